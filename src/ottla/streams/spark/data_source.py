"""What the queries of an application read and write: the connector's records, in packets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.spark.options import Use
from ottla.spark.plain_errors import plainly
from ottla.spark.sink_plan import SinkPlan, sink_plan
from ottla.spark.source_plan import SourcePlan, source_plan
from ottla.spark.stream_reader import StreamReader
from ottla.spark.writers import StreamWriter, write_rows
from ottla.streams.spark.packets import input_packet, written_batches

if TYPE_CHECKING:
    import pyarrow

FORMAT: Final = "ottla-streams"
PACKET_READ: Final = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("records", BinaryType()),
    ]
)
PACKET_WRITTEN: Final = StructType([StructField("records", BinaryType())])
_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_WRITTEN: Final = StructType(
    [
        StructField("topic", StringType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("timestamp", TimestampType()),
        StructField("headers", ArrayType(_HEADER)),
        StructField("partition", IntegerType()),
    ]
)
"""The rows inside of packets that are written."""


class PacketDataSource(DataSource):
    """Topics as packets; options are the connector's."""

    @classmethod
    def name(cls) -> str:
        """What goes into format()."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns of a read."""
        return PACKET_READ

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """spark.readStream"""
        del schema
        with plainly():
            return PacketReader(source_plan(Use.STREAM_READ, dict(self.options)))

    def streamWriter(  # noqa: N802 - Spark's name
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamArrowWriter:
        """frame.writeStream"""
        del schema, overwrite
        with plainly():
            return PacketWriter(sink_plan(Use.STREAM_WRITE, dict(self.options), _WRITTEN))


class PacketReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The connector's reader, with what its tasks read put into packets."""

    def __init__(self, plan: SourcePlan) -> None:
        self._reader = StreamReader(plan)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name, as those below
        return self._reader.initialOffset()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return self._reader.getDefaultReadLimit()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        return self._reader.latestOffset(start, limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._reader.prepareForTriggerAvailableNow()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return self._reader.reportLatestOffset()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return self._reader.partitions(start, end)

    def commit(self, end: dict[str, Any]) -> None:
        self._reader.commit(end)

    def stop(self) -> None:
        self._reader.stop()

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """One row for each batch of records."""
        for batch in self._reader.read(partition):
            if batch.num_rows:
                yield input_packet(batch)


class PacketWriter(DataSourceStreamArrowWriter):
    """The connector's sink, fed with what is in the packets."""

    def __init__(self, plan: SinkPlan) -> None:
        self._plan = plan
        self._writer = StreamWriter(plan)

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        """In a task."""
        return write_rows(self._plan, written_batches(iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """On the driver, when all tasks of a micro-batch are done."""
        self._writer.commit(messages, batchId)
