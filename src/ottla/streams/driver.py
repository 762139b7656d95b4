"""TopologyTestDriver: a topology in one process, without brokers and without Spark.

Every record runs to the end before the next one comes, through all repartition topics.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ottla.clients.partitioner import partition_for_key
from ottla.streams.engine.global_tables import GlobalTableUpdater
from ottla.streams.engine.records import Headers, InputRecord, OutputRecord, Record
from ottla.streams.engine.stores import MemoryStore, Store
from ottla.streams.engine.table_store import TableStore
from ottla.streams.engine.task import Surroundings, Task, progress_store
from ottla.streams.engine.wiring import DropReason
from ottla.streams.failures import TopologyError
from ottla.streams.operators import Sink, Source
from ottla.streams.partitions import partition_counts, task_count
from ottla.streams.serdes import Serde, SerdeChoice, serde_for
from ottla.streams.store_spec import StoreSpec
from ottla.streams.topology import SubtopologyId, Topology

TaskId = tuple[SubtopologyId, int]


@dataclass(slots=True)
class _Topic:
    """All records of a topic, and how far each was read by a test."""

    partitions: int
    logs: list[list[OutputRecord]] = field(default_factory=list)
    arrived: list[OutputRecord] = field(default_factory=list)
    """In the order they were written, whatever their partition."""
    read: int = 0
    next_partition: int = 0

    def append(self, record: OutputRecord) -> tuple[int, int]:
        """Writes a record; its partition and offset come back."""
        while len(self.logs) < self.partitions:
            self.logs.append([])
        partition = self._partition(record)
        self.logs[partition].append(record)
        self.arrived.append(record)
        return partition, len(self.logs[partition]) - 1

    def _partition(self, record: OutputRecord) -> int:
        if record.partition is not None:
            if not 0 <= record.partition < self.partitions:
                raise TopologyError(f"{record.topic!r} has no partition {record.partition}")
            return record.partition
        if record.partition_key is not None:
            return partition_for_key(record.partition_key, self.partitions)
        self.next_partition = (self.next_partition + 1) % self.partitions
        return self.next_partition


class TopologyTestDriver:
    """Pipes records in, reads records out, turns the clock, looks into stores.

    `partitions` counts those of every topic, or says it by topic; one is the default.
    """

    def __init__(
        self,
        topology: Topology,
        *,
        app_id: str = "test",
        partitions: int | Mapping[str, int] = 1,
        wall_clock_ms: int = 0,
    ) -> None:
        self.topology = topology
        self.app_id = app_id
        self.wall_clock_ms = wall_clock_ms
        self._given = partitions
        inputs = {topic: self._given_count(topic) for topic in topology.input_topics()}
        counts = partition_counts(topology, inputs)
        self._topics = {
            topology.topic_name(topic, app_id): _Topic(count) for topic, count in counts.items()
        }
        self._stores: dict[tuple[str, int], MemoryStore] = {}
        self._global_stores = {table.store: MemoryStore() for table in topology.global_tables}
        self._globals = {
            table.topic: GlobalTableUpdater(
                table, topology.store(table.store), self._global_stores[table.store]
            )
            for table in topology.global_tables
        }
        self._tasks: dict[TaskId, Task] = {}
        self._readers: dict[str, SubtopologyId] = {}
        self._waiting: deque[tuple[TaskId, str, InputRecord]] = deque()
        for part in topology.subtopologies:
            for topic in part.topics():
                self._readers[topology.topic_name(topic, app_id)] = part.id
            for spec in (progress_store(part), *part.stores):
                changelog = topology.changelog_topic(spec.name, app_id)
                self._topics[changelog] = _Topic(task_count(part, counts))
            for partition in range(task_count(part, counts)):
                self._tasks[part.id, partition] = self._new_task((part.id, partition))
        self._drain(list(self._tasks))

    def _given_count(self, topic: str) -> int:
        return self._given if isinstance(self._given, int) else self._given.get(topic, 1)

    def _new_task(self, task_id: TaskId) -> Task:
        part = self.topology.subtopologies[task_id[0]]

        def store(spec: StoreSpec) -> Store:
            if spec.is_global:
                return self._global_stores[spec.name]
            return self._stores.setdefault((spec.name, task_id[1]), MemoryStore())

        counts = {name: topic.partitions for name, topic in self._topics.items()}
        for sink_topic in self.topology.output_topics():
            counts.setdefault(sink_topic, self._given_count(sink_topic))
        surroundings = Surroundings(self.app_id, store, counts, self.wall_clock_ms)
        return Task(self.topology, part, task_id[1], surroundings)

    def restart(self) -> None:
        """Throws all tasks away and makes them anew from their stores, as after a crash."""
        self._tasks = {task_id: self._new_task(task_id) for task_id in self._tasks}
        self._drain(list(self._tasks))

    # --- in --------------------------------------------------------------------------------------

    def pipe(
        self,
        topic: str,
        key: Any,
        value: Any,
        timestamp_ms: int = 0,
        *,
        headers: Headers = (),
        partition: int | None = None,
    ) -> None:
        """Writes a record to an input topic and runs the topology until nothing is left to do."""
        record = self._encoded(topic, key, value, timestamp_ms)
        self._write(record._replace(headers=headers, partition=partition))
        self._run()

    def pipe_all(self, topic: str, records: Iterable[tuple[Any, Any, int]]) -> None:
        """Pipes keys, values and timestamps, one after the other."""
        for key, value, timestamp_ms in records:
            self.pipe(topic, key, value, timestamp_ms)

    def pipe_batch(self, records: Iterable[tuple[str, Any, Any, int]]) -> None:
        """Pipes topics, keys, values and timestamps as one micro-batch.

        Each task sees all its records at once and takes them by time, as it would in a cluster.
        """
        for topic, key, value, timestamp_ms in records:
            self._write(self._encoded(topic, key, value, timestamp_ms))
        while self._waiting:
            batches: dict[TaskId, dict[str, list[InputRecord]]] = {}
            while self._waiting:
                task_id, topic, record = self._waiting.popleft()
                batches.setdefault(task_id, {}).setdefault(topic, []).append(record)
            for task_id, inputs in batches.items():
                self._tasks[task_id].process(inputs)
            self._drain(list(batches))

    def _encoded(self, topic: str, key: Any, value: Any, timestamp_ms: int) -> OutputRecord:
        keys, values = self._input_serdes(topic)
        key_bytes = None if key is None else keys.serializer()(key)
        value_bytes = None if value is None else values.serializer()(value)
        return OutputRecord(topic, key_bytes, value_bytes, timestamp_ms, partition_key=key_bytes)

    def _input_serdes(self, topic: str) -> tuple[Serde, Serde]:
        for table in self.topology.global_tables:
            if table.topic == topic:
                return table.source.key, table.source.value
        for node in self.topology.nodes:
            if isinstance(node.operator, Source) and topic in node.operator.topics:
                return node.operator.key, node.operator.value
        names = ", ".join(self.topology.input_topics())
        raise TopologyError(f"the topology does not read {topic!r}; it reads {names}")

    def _write(self, record: OutputRecord) -> None:
        if record.topic not in self._topics:
            self._topics[record.topic] = _Topic(self._given_count(record.topic))
        partition, offset = self._topics[record.topic].append(record)
        arriving = InputRecord(
            record.key, record.value, record.timestamp_ms, offset, record.headers
        )
        if record.topic in self._globals:
            self._globals[record.topic].update([arriving])
        elif record.topic in self._readers:
            task_id = (self._readers[record.topic], partition)
            self._waiting.append((task_id, record.topic, arriving))

    def _run(self) -> None:
        while self._waiting:
            task_id, topic, record = self._waiting.popleft()
            self._tasks[task_id].process({topic: [record]})
            self._drain([task_id])

    def _drain(self, task_ids: Sequence[TaskId]) -> None:
        """Ends the batch of these tasks and writes what they wanted written."""
        for task_id in task_ids:
            task = self._tasks[task_id]
            for output in (*task.take_outputs(), *task.commit()):
                self._write(output)

    # --- time ------------------------------------------------------------------------------------

    def advance_wall_clock(self, milliseconds: int) -> None:
        """Turns the clock; timers that go by it fire."""
        self.wall_clock_ms += milliseconds
        for task_id, task in self._tasks.items():
            task.advance_wall_clock(self.wall_clock_ms)
            self._drain([task_id])
        self._run()

    # --- out -------------------------------------------------------------------------------------

    def read(
        self, topic: str, *, key: SerdeChoice | None = None, value: SerdeChoice | None = None
    ) -> list[Record]:
        """The records written to a topic since the last time, with the serdes of its sink."""
        log = self._topics.get(topic)
        if log is None:
            return []
        keys, values = self._output_serdes(topic)
        decode_key = (keys if key is None else serde_for(key)).deserializer()
        decode_value = (values if value is None else serde_for(value)).deserializer()
        fresh, log.read = log.arrived[log.read :], len(log.arrived)
        return [
            Record(
                None if record.key is None else decode_key(record.key),
                None if record.value is None else decode_value(record.value),
                record.timestamp_ms,
                record.headers,
            )
            for record in fresh
        ]

    def read_raw(self, topic: str) -> list[OutputRecord]:
        """All records of a topic as bytes, the application's own topics included."""
        return list(self._topics[topic].arrived) if topic in self._topics else []

    def partition_of(self, topic: str) -> list[list[OutputRecord]]:
        """All records of a topic by partition."""
        return [list(log) for log in self._topics[topic].logs]

    def _output_serdes(self, topic: str) -> tuple[Serde, Serde]:
        sinks = [node.operator for node in self.topology.nodes if isinstance(node.operator, Sink)]
        for sink in sinks:
            named = sink.topic if isinstance(sink.topic, str) else ""
            if named and self.topology.topic_name(named, self.app_id) == topic:
                return sink.key, sink.value
        for sink in sinks:
            if not isinstance(sink.topic, str):
                return sink.key, sink.value
        return self._input_serdes(topic)

    def topics(self) -> list[str]:
        """All topics that have records."""
        return sorted(name for name, topic in self._topics.items() if topic.arrived)

    # --- state -----------------------------------------------------------------------------------

    def store(self, name: str, *, partition: int = 0) -> Any:
        """A store with its serdes, as a processor would see it."""
        spec = self._spec(name)
        if spec.is_global:
            return TableStore(spec, self._global_stores[name])
        for part in self.topology.subtopologies:
            if spec in part.stores:
                return self._tasks[part.id, partition].store(name)
        raise AssertionError(name)

    def table(self, name: str) -> dict[Any, Any]:
        """The rows of a table's store, of all partitions."""
        spec = self._spec(name)
        stores = [store for (owner, _), store in self._stores.items() if owner == name]
        if spec.is_global:
            stores = [self._global_stores[name]]
        rows: dict[Any, Any] = {}
        for store in stores:
            rows.update({key: value for key, value, _ in TableStore(spec, store).all()})
        return rows

    def _spec(self, name: str) -> StoreSpec:
        names = [store.name for store in self.topology.stores]
        if name not in names:
            raise TopologyError(
                f"there is no store {name!r}; there are {', '.join(names) or 'none'}"
            )
        return self.topology.store(name)

    def dropped(self) -> dict[DropReason, int]:
        """How many records went no further, by reason."""
        total: Counter[DropReason] = Counter()
        for task in self._tasks.values():
            for (_, reason), count in task.dropped.items():
                total[reason] += count
        return dict(total)

    def dropped_by_node(self) -> dict[str, dict[DropReason, int]]:
        """The same, by node."""
        found: dict[str, dict[DropReason, int]] = defaultdict(dict)
        for task in self._tasks.values():
            for (node, reason), count in task.dropped.items():
                found[node][reason] = found[node].get(reason, 0) + count
        return dict(found)
