"""What a task does: reads one range of a partition into the batches Spark asks for."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from ottla.clients.arrow.partition_reader import PartitionReader
from ottla.clients.failures import RecordsGone
from ottla.errors import TimedOut
from ottla.model.ids import TopicPartition
from ottla.spark.offset_ranges import OffsetRange
from ottla.spark.record_columns import as_spark_batch, client_columns, read_columns
from ottla.spark.source_plan import SourcePlan

if TYPE_CHECKING:
    import pyarrow

_log = logging.getLogger("ottla.spark")


class RangeOfPartition(InputPartition):
    """The work of one task, as Spark carries it to where the task runs."""

    def __init__(self, topic: str, partition: int, start: int, end: int) -> None:
        super().__init__((topic, partition, start, end))

    @property
    def range(self) -> OffsetRange:
        """The work."""
        topic, partition, start, end = self.value
        return OffsetRange(TopicPartition(topic, partition), start, end)


def task_for(work: OffsetRange) -> RangeOfPartition:
    """The work as Spark carries it."""
    return RangeOfPartition(work.where.topic, work.where.partition, work.start, work.end)


def read_range(work: OffsetRange, plan: SourcePlan) -> Iterator[pyarrow.RecordBatch]:
    """The records of the range, in order.

    Where some of them are gone the task fails, or goes on behind the gap if data loss is allowed.
    """
    target = to_arrow_schema(read_columns(has_headers=plan.has_headers), timezone="UTC")
    start = work.start
    while start < work.end:
        left = OffsetRange(work.where, start, work.end)
        try:
            for batch in _batches(left, plan):
                if batch.num_rows:
                    start = batch.column("offset")[-1].as_py() + 1
                    yield as_spark_batch(batch, work.where.topic, target)
            return
        except RecordsGone as gone:
            if plan.fails_on_data_loss:
                raise
            _log.warning("%s; failOnDataLoss is false, so reading goes on without them", gone)
            if gone.end <= start:
                return
            start = max(start, gone.start)
        except TimedOut as silence:
            if plan.fails_on_data_loss:
                raise
            _log.warning("%s; failOnDataLoss is false, so reading goes on without them", silence)
            return


def _batches(work: OffsetRange, plan: SourcePlan) -> Iterator[pyarrow.RecordBatch]:
    columns = client_columns(has_headers=plan.has_headers)
    with PartitionReader(
        work.where, work.start, work.end, columns=columns, config=plan.kafka
    ) as reader:
        yield from reader
