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

from ottla.streams.engine.task import Task
from ottla.streams.spark.packets import OUTPUT_ARROW, input_records, output_packets
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
        stores = TaskStores(self._state)
        task = new_task(self._work, int(partition), stores.open, now_ms)
        inputs = in_order(packets)
        if inputs:
            task.process(inputs)
        records = finish(task)
        stores.save()
        if self._has_clock:
            self._set_timer(task, now_ms)
        return (
            Row(records=packed) for packed in output_packets(records, self._work.partition_counts)
        )

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
        for batch in packets:
            for row in batch.to_pylist():
                partition = row["partition"]
                if partition not in tasks:
                    tasks[partition] = new_task(work, partition, forgetful_store, _now_ms())
                task = tasks[partition]
                task.process({row["topic"]: input_records(row["records"])})
                written = list(output_packets(task.take_outputs(), work.partition_counts))
                yield pyarrow.RecordBatch.from_arrays(
                    [pyarrow.array(written, pyarrow.binary())], schema=OUTPUT_ARROW
                )

    return mapped


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
