"""`spark.readStream.format("ottla")`: offsets of each micro-batch on the driver, ranges in tasks.

Invariants:
1. An end that was given to Spark is never gone behind, unless the log itself has gone behind it
   and data loss is allowed.
2. What a checkpoint says between two offsets is read again as it was: planning depends on the
   offsets only, and for a partition that is new in `end`, on its first offset.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from ottla.clients.failures import RecordsGone
from ottla.errors import OttlaError
from ottla.model.ids import TopicPartition
from ottla.spark.admission import admit, is_too_little
from ottla.spark.cluster_access import ClusterAccess
from ottla.spark.offset_ranges import cut, ranges_between
from ottla.spark.offsets import Offsets, TopicOffsets, from_topic_offsets, to_topic_offsets
from ottla.spark.plain_errors import plainly
from ottla.spark.range_reader import RangeOfPartition, read_range, task_for
from ottla.spark.source_plan import SourcePlan

if TYPE_CHECKING:
    import pyarrow

_log = logging.getLogger("ottla.spark")


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The source of one streaming query."""

    def __init__(self, plan: SourcePlan) -> None:
        self._plan = plan
        self._access = ClusterAccess(plan.connection, committed_only=plan.committed_only)
        self._target: Offsets | None = None
        """Where a query ends that reads what is available now."""
        self._seen: Offsets = {}
        """The ends that were seen last."""
        self._admitted_at = time.monotonic()
        self._committed: TopicOffsets = {}
        """What the group has been told last."""

    # --- on the driver

    def initialOffset(self) -> TopicOffsets:  # noqa: N802 - Spark's name, as those below
        """Where a query without a checkpoint begins."""
        with plainly():
            there = self._access.ranges(self._access.partitions(self._plan.selection))
            return to_topic_offsets(self._access.resolve(self._plan.start, there))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The most a micro-batch takes, or the least it waits for."""
        limits = self._plan.limits
        if limits.offsets_max is not None:
            return ReadMaxRows(limits.offsets_max)
        if limits.offsets_min is not None:
            return ReadMinRows(limits.offsets_min)
        return ReadAllAvailable()

    def latestOffset(self, start: TopicOffsets, limit: ReadLimit) -> TopicOffsets:  # noqa: N802
        """Where the next micro-batch ends; at `start` where there is nothing to do yet.

        Everything before `start` is finished: Spark asks when the last micro-batch is committed.
        """
        self.commit(start)
        with plainly():
            begin, latest = self._begin_and_latest(from_topic_offsets(start))
            if begin == latest and self._has_come(latest):
                begin, latest = self._begin_and_latest(from_topic_offsets(start))
        available = sum(end - begin[where] for where, end in latest.items())
        waited_ms = (time.monotonic() - self._admitted_at) * 1000
        may_wait = self._target is None and not isinstance(limit, ReadAllAvailable)
        if may_wait and is_too_little(available, self._plan.limits, waited_ms=waited_ms):
            return start
        if isinstance(limit, ReadMaxRows):
            latest = admit(begin, latest, limit.max_rows)
        if available:
            self._admitted_at = time.monotonic()
        return to_topic_offsets(latest)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Notes where everything ends now; the query reads no further."""
        with plainly():
            partitions = self._access.partitions(self._plan.selection)
            there = self._access.ranges(partitions)
        self._target = {where: end for where, (_, end) in there.items()}

    def reportLatestOffset(self) -> TopicOffsets | None:  # noqa: N802
        """The ends that were seen last, for the query's progress."""
        return to_topic_offsets(self._seen) if self._seen else None

    def partitions(self, start: TopicOffsets, end: TopicOffsets) -> Sequence[InputPartition]:
        """One task a range."""
        begin, after = from_topic_offsets(start), from_topic_offsets(end)
        new = after.keys() - begin.keys()
        if new:
            with plainly():
                begin.update(self._first_offsets(set(new)))
        pieces = cut(
            ranges_between(begin, after),
            tasks_min=self._plan.tasks_min,
            records_max=self._plan.records_max,
        )
        return [task_for(piece) for piece in pieces]

    def commit(self, end: TopicOffsets) -> None:
        """A micro-batch is finished: the group's offsets say so to whoever looks.

        The checkpoint is what counts, so trouble with the group does not end the query.
        """
        if not self._plan.group_id or end == self._committed:
            return
        try:
            self._access.commit(self._plan.group_id, from_topic_offsets(end))
            self._committed = end
        except OttlaError as error:
            _log.warning("offsets of group %r are not committed: %s", self._plan.group_id, error)

    def stop(self) -> None:
        """The query has ended."""
        self._access.close()

    # --- in a task

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """The records of one range."""
        if isinstance(partition, RangeOfPartition):
            yield from read_range(partition.range, self._plan)

    # --- what there is

    def _begin_and_latest(self, start: Offsets) -> tuple[Offsets, Offsets]:
        """Where each partition goes on, new ones at their first offset, and where it ends."""
        there = self._access.ranges(self._access.partitions(self._plan.selection))
        self._seen = {where: end for where, (_, end) in there.items()}
        begin = dict(start)
        latest: Offsets = {}
        for where, (first, end) in there.items():
            if self._target is not None and where not in self._target and where not in begin:
                continue  # it came after the target was set
            at = begin.setdefault(where, first)
            if end < at:
                self._report_loss(RecordsGone(where, at, first, end))
                begin[where] = latest[where] = end  # a new log under the old name
            else:
                target = end if self._target is None else self._target.get(where, at)
                latest[where] = max(at, min(end, target))
        for where in start.keys() - there.keys():
            self._report_loss(RecordsGone(where, start[where], 0, 0))
            latest[where] = start[where]
        return begin, latest

    def _has_come(self, ends: Offsets) -> bool:
        """Waits a while for records, where the query does not end with those that are there."""
        wait_ms = self._plan.idle_wait_ms
        if self._target is not None or not wait_ms:
            return False
        return self._access.wait_for_records(ends, wait_ms)

    def _report_loss(self, gone: RecordsGone) -> None:
        """Records that were expected are not there (any more)."""
        if self._plan.fails_on_data_loss:
            raise gone
        _log.warning("%s; failOnDataLoss is false, so the query goes on", gone)

    def _first_offsets(self, partitions: set[TopicPartition]) -> Offsets:
        return {where: first for where, (first, _) in self._access.ranges(partitions).items()}
