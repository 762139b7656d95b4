"""What the queries of an application read and write: the connector's records, in packets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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

from ottla.clients.blocking.loop_thread import LoopThread
from ottla.spark.batch_commit import Load, commit_batch
from ottla.spark.consumed import Consumed
from ottla.spark.hand_over import forget
from ottla.spark.ledger import LedgerEntry
from ottla.spark.offsets import from_topic_offsets
from ottla.spark.options import Use
from ottla.spark.plain_errors import plainly
from ottla.spark.range_reader import RangeOfPartition
from ottla.spark.sink_plan import Delivery, SinkPlan, sink_plan
from ottla.spark.source_plan import SourcePlan, source_plan
from ottla.spark.stream_reader import StreamReader
from ottla.spark.writers import TaskResult, write_rows
from ottla.streams.spark.consumption import Consumption
from ottla.streams.spark.packets import input_packets, written_batches
from ottla.streams.spark.purge import Purge
from ottla.streams.spark.starts import Starts, without_count

if TYPE_CHECKING:
    import pyarrow

FORMAT: Final = "ottla-streams"
PURGED: Final = "purged"
"""Option of a read: topics whose records nobody needs once they were read."""
WOKEN: Final = "woken"
"""Option of a read: for how many partition numbers the first micro-batch has a packet anyway."""
CLOCKED: Final = "clocked"
"""Option of a read: "true" where there are timers by the wall clock."""
CONSUMER: Final = "consumer"
"""Option of a write: the group whose offsets are committed with the results."""
PACKET_READ: Final = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("next_offset", LongType()),
        StructField("records", BinaryType()),
    ]
)
PACKET_WRITTEN: Final = StructType(
    [StructField("records", BinaryType()), StructField("consumed", StringType())]
)
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
        options, own = _split(self.options)
        with plainly():
            plan = source_plan(Use.STREAM_READ, options)
            purged = [topic for topic in own.get(PURGED, "").split(",") if topic]
            return PacketReader(
                plan,
                Purge(purged, plan.connection),
                tasks_to_wake=int(own.get(WOKEN, "0")),
                is_clocked=own.get(CLOCKED) == "true",
            )

    def streamWriter(  # noqa: N802 - Spark's name
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamArrowWriter:
        """frame.writeStream"""
        del schema, overwrite
        options, own = _split(self.options)
        with plainly():
            plan = sink_plan(Use.STREAM_WRITE, options, _WRITTEN)
        return PacketWriter(plan, own.get(CONSUMER, ""))


def _split(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The connector's options, and ours."""
    given = {name.lower(): text for name, text in options.items()}
    own: dict[str, str] = {}
    for name in (PURGED, WOKEN, CLOCKED, CONSUMER):
        if name in given:
            own[name] = given.pop(name)
    return given, own


class PacketReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The connector's reader, with what its tasks read put into packets."""

    def __init__(
        self, plan: SourcePlan, purge: Purge, *, tasks_to_wake: int, is_clocked: bool
    ) -> None:
        self._reader = StreamReader(plan)
        self._purge = purge
        self._tasks_to_wake = tasks_to_wake
        self._starts = Starts() if is_clocked else None
        self._topic = min(plan.selection.topics)
        self._first: dict[str, Any] | None = None
        """Where the first micro-batch begins."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name, as those below
        return self._reader.initialOffset()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return self._reader.getDefaultReadLimit()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Everything before `start` is finished: nobody asks for it again."""
        begin = without_count(start)
        self._purge.up_to(from_topic_offsets(begin))
        latest = self._reader.latestOffset(begin, limit)
        return latest if self._starts is None else self._starts.counted(latest, start)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._reader.prepareForTriggerAvailableNow()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return self._reader.reportLatestOffset()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Ranges; in the first micro-batch also empty ones that wake tasks."""
        if self._first is None:
            self._first = start
        wakes = range(self._tasks_to_wake if start == self._first else 0)
        empty = [RangeOfPartition(self._topic, number, 0, 0) for number in wakes]
        return [*empty, *self._reader.partitions(without_count(start), without_count(end))]

    def commit(self, end: dict[str, Any]) -> None:
        self._reader.commit(without_count(end))

    def stop(self) -> None:
        self._reader.stop()

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """One row for each batch of records."""
        if isinstance(partition, RangeOfPartition):
            yield from input_packets(partition.range, self._reader.read(partition))


class PacketResult(WriterCommitMessage):
    """What a task leaves to the driver."""

    def __init__(self, result: TaskResult, consumed: str | None) -> None:
        self.result = result
        self.consumed = consumed


class PacketWriter(DataSourceStreamArrowWriter):
    """The connector's sink, fed with what is in the packets."""

    def __init__(self, plan: SinkPlan, group: str) -> None:
        self._plan = plan
        self._group = group
        """Whose offsets go along with the records."""

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        """In a task."""
        consumed = Consumption()
        result = write_rows(self._plan, written_batches(consumed.noting(iterator)))
        return PacketResult(result, consumed.text())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """On the driver, when all tasks of a micro-batch are done."""
        if self._plan.delivery is not Delivery.EXACTLY_ONCE:
            return
        packets = [message for message in messages if isinstance(message, PacketResult)]
        runs = [run for packet in packets for run in packet.result.runs]
        consumption = Consumption()
        for packet in packets:
            if packet.consumed is not None:
                consumption.add_text(packet.consumed)
        if not runs and not consumption.ranges:
            return
        consumed = Consumed(self._group, consumption.ranges) if consumption.ranges else None
        entry = LedgerEntry(self._plan.transactional_id, packets[0].result.query, batchId)
        load = Load(self._plan.transactional_id, runs, entry, consumed)
        loop = LoopThread("streams-sink")
        try:
            with plainly():
                loop.run(commit_batch(self._plan, load))
        finally:
            loop.stop()

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """On the driver, when a task has failed for good, or the commit."""
        del batchId
        for message in messages:
            if isinstance(message, PacketResult):
                forget(message.result.runs)
