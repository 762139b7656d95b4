"""How Spark calls the engine: with state, by partition number; without, range by range."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from ottla.model.ids import TopicPartition
from ottla.spark.offset_ranges import OffsetRange
from ottla.streams.engine.records import OutputRecord
from ottla.streams.engine.task import Task
from ottla.streams.spark.compiled_columns import column_chains, packets_by_columns
from ottla.streams.spark.consumption import Consumption
from ottla.streams.spark.packets import OUTPUT_ARROW, input_records, output_packets
from ottla.streams.spark.restoring import restore
from ottla.streams.spark.state_cells import TaskStores, open_state
from ottla.streams.spark.worker import Work, finish, forgetful_store, in_order, new_task

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState


class PartitionProcessor(StatefulProcessor):
    """Runs the packets of one partition number of all topics a sub-topology reads."""

    def __init__(self, work: Work, *, has_clock: bool) -> None:
        self._work = work
        self._has_clock = has_clock
        self._handle: StatefulProcessorHandle | None = None
        self._state: MapState | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Once a Spark task, before its first partition number."""
        self._handle = handle
        self._state = open_state(handle)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Row]:
        """The packets of one partition number, in any order."""
        return self._run(key[0], rows, timerValues)

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        """A timer by the wall clock is due: making the task fires it."""
        del expiredTimerInfo
        return self._run(key[0], (), timerValues)

    def close(self) -> None:
        """Nothing is held."""

    def _run(self, partition: int, packets: Iterable[Any], times: TimerValues) -> Iterator[Row]:
        assert self._state is not None
        now_ms = times.getCurrentProcessingTimeInMs() if self._has_clock else _now_ms()
        restore(self._work, int(partition), self._state)
        stores = TaskStores(self._state)
        task = new_task(self._work, int(partition), stores.open, now_ms)
        read, consumed = list(packets), Consumption()
        consumed.add_packets(read)
        inputs = in_order(read)
        if inputs:
            task.process(inputs)
        records = finish(task)
        stores.save()
        if self._has_clock:
            self._set_timer(task, now_ms)
        return self._rows(records, consumed.text())

    def _rows(self, records: list[OutputRecord], consumed: str | None) -> Iterator[Row]:
        if consumed is not None:
            yield Row(records=None, consumed=consumed)
        for packed in output_packets(records, self._work.partition_counts):
            yield Row(records=packed, consumed=None)

    def _set_timer(self, task: Task, now_ms: int) -> None:
        """Has Spark call again when the next timer of the task is due."""
        assert self._handle is not None
        due_ms = task.next_wall_clock_ms
        there = list(self._handle.listTimers())
        for other in there:
            if other != due_ms and other > now_ms:
                self._handle.deleteTimer(other)
        if due_ms is not None and due_ms not in there:
            self._handle.registerTimer(due_ms)


MapBatches = Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]


def without_state(work: Work) -> MapBatches:
    """For a sub-topology that remembers nothing: each packet by itself, where it was read."""

    def mapped(packets: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        tasks: dict[int, Task] = {}
        chains = column_chains(work.topology, work.subtopology, work.app_id)
        for batch in packets:
            for row in batch.to_pylist():
                span = OffsetRange(
                    TopicPartition(row["topic"], row["partition"]),
                    row["offset"],
                    row["next_offset"],
                )
                written = packets_by_columns(
                    chains, span.where.topic, row["records"], work.partition_counts
                )
                if written is None:
                    if span.where.partition not in tasks:
                        tasks[span.where.partition] = new_task(
                            work, span.where.partition, forgetful_store, _now_ms()
                        )
                    task = tasks[span.where.partition]
                    task.process({span.where.topic: input_records(row["records"])})
                    written = list(output_packets(task.take_outputs(), work.partition_counts))
                yield _written(written, span)

    return mapped


def _written(packets: Iterable[bytes], span: OffsetRange) -> pyarrow.RecordBatch:
    """Packets to write, and word of what they were made of."""
    consumed = Consumption()
    consumed.add(span)
    records, texts = [None, *packets], [consumed.text()]
    texts += [None] * (len(records) - 1)
    columns = [pyarrow.array(records, pyarrow.binary()), pyarrow.array(texts, pyarrow.string())]
    return pyarrow.RecordBatch.from_arrays(columns, schema=OUTPUT_ARROW)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
