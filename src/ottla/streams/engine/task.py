"""One sub-topology on one partition number: records in, records out.

1. Of the input partitions the record with the lowest timestamp comes next; within a partition
   offsets decide. Ties go to the topic that was drawn first.
2. A record runs through all nodes, and what it fires, before the next one comes.
3. State is written into overlays; `commit` writes down what changed, and nothing before.
4. A task that raised is thrown away: made anew, it goes on from its last commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from typing import Any

from ottla.errors import OttlaError
from ottla.streams.engine.changelog import changelog_records
from ottla.streams.engine.fusing import chains_of, is_fused
from ottla.streams.engine.processing import Timer, process
from ottla.streams.engine.processors import MAKERS, lookup_of
from ottla.streams.engine.progress import Cell, Progress
from ottla.streams.engine.records import InputRecord, OutputRecord
from ottla.streams.engine.stores import OverlayStore, Store
from ottla.streams.engine.wiring import (
    DropReason,
    Forward,
    Lookup,
    Stores,
    TaskState,
    Wiring,
    forward_to,
)
from ottla.streams.failures import ProcessingFailed, TopologyError
from ottla.streams.operators import Process, Source
from ottla.streams.serdes import NamedSerde
from ottla.streams.store_spec import StoreKind, StoreSpec
from ottla.streams.topology import Node, Subtopology, Topology


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a task is given by whoever runs it."""

    app_id: str
    store: Callable[[StoreSpec], Store]
    """Opens this task's part of a store, or, for a global one, the whole of it."""
    partition_counts: Mapping[str, int] = field(default_factory=dict)
    """Of topics by their full names; needed where a partitioner chooses."""
    wall_clock_ms: int = 0


def progress_store(subtopology: Subtopology) -> StoreSpec:
    """The store in which a task keeps its numbers."""
    text = NamedSerde("bytes")
    return StoreSpec(f"progress-{subtopology.id}", StoreKind.PROGRESS, text, text)


class Task:
    """Runs records through one sub-topology."""

    __slots__ = (
        "_app_id",
        "_overlays",
        "_sources",
        "_specs",
        "_stores",
        "_stream_time",
        "_timers",
        "state",
    )

    def __init__(
        self,
        topology: Topology,
        subtopology: Subtopology,
        partition: int,
        surroundings: Surroundings,
    ) -> None:
        self._app_id = surroundings.app_id
        progress_spec = progress_store(subtopology)
        self._specs = [progress_spec, *(one for one in subtopology.stores if not one.is_global)]
        self._overlays = {spec.name: OverlayStore(surroundings.store(spec)) for spec in self._specs}
        shared = {one.name: surroundings.store(one) for one in subtopology.stores if one.is_global}
        progress = Progress(self._overlays[progress_spec.name])
        self.state = TaskState(partition, progress, wall_clock_ms=surroundings.wall_clock_ms)
        specs = {store.name: store for store in topology.stores}
        self._stores = Stores(self.state, self._overlays, shared, specs)
        self._timers: list[Timer] = []
        self._stream_time = progress.cell("stream time")
        made = self._make(topology, subtopology, surroundings)
        self._sources = {
            topology.topic_name(topic, surroundings.app_id): _reader(source, made[node.name])
            for node, source in subtopology.sources()
            for topic in source.topics
        }
        self.advance_wall_clock(surroundings.wall_clock_ms)

    def _make(
        self, topology: Topology, subtopology: Subtopology, surroundings: Surroundings
    ) -> dict[str, Forward]:
        """Makes every node's processor, children before parents; those of a chain have one."""
        made: dict[str, Forward] = {}
        chains = chains_of(subtopology)
        for node in reversed(subtopology.nodes):
            if node.name in chains:
                chain = chains[node.name]
                made[node.name] = chain.make(*(made[leaf] for leaf in chain.leaves))
            if is_fused(node):
                continue
            children = tuple(
                made[child.name]
                for child in subtopology.nodes
                for parent in child.parents
                if parent == node.name
            )
            wiring = self._wiring(topology, node, children, surroundings)
            if isinstance(node.operator, Process):
                made[node.name] = process(node.operator, wiring, self._timers)
            else:
                made[node.name] = MAKERS[type(node.operator)](node.operator, wiring)
        return made

    def _wiring(
        self,
        topology: Topology,
        node: Node,
        children: tuple[Forward, ...],
        surroundings: Surroundings,
    ) -> Wiring:
        def lookup(name: str) -> Lookup:
            return lookup_of(name, wiring)

        wiring = Wiring(
            node,
            children,
            forward_to(children),
            self.state,
            self._stores,
            topology,
            lookup,
            surroundings.app_id,
            surroundings.partition_counts,
        )
        return wiring

    @property
    def stream_time_ms(self) -> int:
        """The newest timestamp this task has seen; -1 before the first."""
        return self._stream_time.value

    @property
    def next_wall_clock_ms(self) -> int | None:
        """When the next timer that goes by the wall clock is due; None where there is none."""
        timers = [one for one in self._timers if one.by == "wall-clock" and not one.cancelled]
        return min((one.due.value for one in timers), default=None)

    @property
    def dropped(self) -> Mapping[tuple[str, DropReason], int]:
        """How many records went no further, by node and reason."""
        return self.state.dropped

    def process(self, inputs: Mapping[str, Sequence[InputRecord]]) -> None:
        """Runs the records of its partitions, by topic; each in the order of offsets."""
        for topic in inputs:
            if topic not in self._sources:
                raise TopologyError(f"this task does not read {topic!r}")
        ordered = [(topic, inputs[topic]) for topic in self._sources if inputs.get(topic)]
        if len(ordered) == 1:
            self._run(ordered[0][0], ordered[0][1])
            return
        for topic, record in _by_time(ordered):
            self._run(topic, (record,))

    def _run(self, topic: str, records: Sequence[InputRecord]) -> None:
        read, state, seen = self._sources[topic], self.state, self._stream_time
        state.topic = topic
        by_stream_time = any(timer.by == "stream-time" for timer in self._timers)
        record = None
        try:
            for record in records:
                state.offset = record[3]
                read(record, seen)
                if by_stream_time:
                    self._fire("stream-time", seen.value)
        except OttlaError:
            raise
        except Exception as error:
            assert record is not None
            raise ProcessingFailed(topic, state.partition, record[3], error) from error

    def advance_wall_clock(self, now_ms: int) -> None:
        """Says how late it is; fires the timers that go by it."""
        self.state.wall_clock_ms = now_ms
        self._fire("wall-clock", now_ms)

    def _fire(self, by: str, now_ms: int) -> None:
        for timer in self._timers:
            if timer.by == by:
                timer.fire_if_due(now_ms)

    def take_outputs(self) -> list[OutputRecord]:
        """What was to be written since the last time, in order."""
        outputs = self.state.outputs[:]
        self.state.outputs.clear()
        return outputs

    def commit(self) -> list[OutputRecord]:
        """Ends a batch: writes down what changed, and returns it as records of the changelogs."""
        self._stores.expire()
        self.state.progress.save()
        records = []
        for spec in self._specs:
            overlay = self._overlays[spec.name]
            if overlay.changes:
                if spec.logged:
                    topic = f"{self._app_id}-{spec.name}-changelog"
                    records += changelog_records(spec, overlay.changes, topic, self.state.partition)
                overlay.flush()
        return records

    def store(self, name: str) -> Any:
        """A store of this task with its serdes."""
        return self._stores.typed(name)


Read = Callable[[InputRecord, Cell], None]


def _reader(source: Source, forward: Forward) -> Read:
    """A function that takes a record's bytes apart and sends it on its way."""
    decode_key, decode_value = source.key.deserializer(), source.value.deserializer()
    timestamp_of = source.timestamp_of

    def read(record: InputRecord, stream_time: Cell) -> None:
        key_bytes, value_bytes, timestamp_ms, _, headers = record
        key = None if key_bytes is None else decode_key(key_bytes)
        value = None if value_bytes is None else decode_value(value_bytes)
        if timestamp_of is not None:
            timestamp_ms = timestamp_of(key, value, timestamp_ms)
        if timestamp_ms < 0:
            raise ValueError(f"its timestamp is {timestamp_ms} ms, before 1970")
        if timestamp_ms > stream_time.value:
            stream_time.value = timestamp_ms
        forward(key, value, timestamp_ms, headers)

    return read


def _by_time(
    ordered: list[tuple[str, Sequence[InputRecord]]],
) -> Iterator[tuple[str, InputRecord]]:
    """All records, the one with the lowest timestamp of the partitions' heads first."""
    heap = [(records[0].timestamp_ms, number, 0) for number, (_, records) in enumerate(ordered)]
    heapify(heap)
    while heap:
        _, number, place = heap[0]
        topic, records = ordered[number]
        yield topic, records[place]
        if place + 1 < len(records):
            heapreplace(heap, (records[place + 1].timestamp_ms, number, place + 1))
        else:
            heappop(heap)
