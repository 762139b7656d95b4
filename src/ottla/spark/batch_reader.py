"""`spark.read.format("ottla")`: ranges planned once on the driver, and read by tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from ottla.model.ids import TopicPartition
from ottla.spark.bounds import Bound, WithoutMatch
from ottla.spark.cluster_access import ClusterAccess, Ranges
from ottla.spark.offset_ranges import OffsetRange, cut, ranges_between
from ottla.spark.plain_errors import plainly
from ottla.spark.pushdown import Wanted, push
from ottla.spark.range_reader import RangeOfPartition, read_range, task_for
from ottla.spark.source_plan import SourcePlan

if TYPE_CHECKING:
    import pyarrow


def batch_reader(plan: SourcePlan) -> DataSourceReader:
    """The reader of a plan. Spark asks a reader for its filters if it has a method for them."""
    return FilteringReader(plan) if plan.pushes_filters else BatchReader(plan)


class BatchReader(DataSourceReader):
    """Reads what is there now, or between two bounds."""

    def __init__(self, plan: SourcePlan, wanted: Wanted | None = None) -> None:
        self._plan = plan
        self._wanted = wanted or Wanted()

    def partitions(self) -> Sequence[InputPartition]:
        """One task a range."""
        with plainly():
            ranges = self._ranges()
        pieces = cut(ranges, tasks_min=self._plan.tasks_min, records_max=self._plan.records_max)
        return [task_for(piece) for piece in pieces]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """In a task. Spark asks for one even where there is nothing to read."""
        if isinstance(partition, RangeOfPartition):
            yield from read_range(partition.range, self._plan)

    def _ranges(self) -> list[OffsetRange]:
        plan = self._plan
        assert plan.end is not None, "a batch has an end"
        access = ClusterAccess(plan.connection, committed_only=plan.committed_only)
        try:
            there = access.ranges(access.partitions(plan.selection))
            start = access.resolve(plan.start, there)
            end = access.resolve(plan.end, there)
            wanted = [self._wanted.narrowed(each) for each in ranges_between(start, end)]
            return self._young(access, there, wanted)
        finally:
            access.close()

    def _young(
        self, access: ClusterAccess, there: Ranges, ranges: list[OffsetRange]
    ) -> list[OffsetRange]:
        """The ranges from the first record on that is as young as wanted."""
        if self._wanted.youngest_ms is None or not ranges:
            return ranges
        bound = Bound(timestamp_ms=self._wanted.youngest_ms, without_match=WithoutMatch.LATEST)
        where: set[TopicPartition] = {each.where for each in ranges}
        first = access.resolve(bound, {each: there[each] for each in where})
        return [
            OffsetRange(each.where, max(each.start, first[each.where]), each.end) for each in ranges
        ]


class FilteringReader(DataSourceReader):
    """Leaves out what the query's filters leave out.

    Only where it is asked for: Spark keeps what a frame's first query has planned, filters and all,
    for every later query of the same frame.
    """

    def __init__(self, plan: SourcePlan) -> None:
        self._plan = plan
        self._inner = BatchReader(plan)

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Takes over what can be kept by choosing ranges."""
        wanted, left = push(filters)
        self._inner = BatchReader(self._plan, wanted)
        return left

    def partitions(self) -> Sequence[InputPartition]:
        """One task a range."""
        return self._inner.partitions()

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """In a task."""
        return self._inner.read(partition)
