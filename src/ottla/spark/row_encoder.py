"""Rows of a frame into record batches for each partition, in Arrow from end to end.

Does not send anything, and does not know who will: the batches carry no producer.

Invariants:
1. Rows of one partition keep their order.
2. A row's partition is the one it names, else its key's, exactly where every Kafka client puts it;
   rows without a key go to one partition after the other, a run of rows each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from ottla.clients.failures import TopicNotFound
from ottla.errors import InvalidRecord
from ottla.model.ids import TopicPartition
from ottla.records.arrow_encode import TableEncoding, encode_table, place_table
from ottla.spark.sink_plan import SinkPlan
from ottla.spark.staged_batches import StagedBatches

if TYPE_CHECKING:
    import pyarrow

RUN_BYTES: Final = 8 * 1024 * 1024
"""Rows are gathered up to this before they are encoded, so that batches are large."""
_ENCODED: Final = ("key", "value", "timestamp", "headers")


class PartitionCounts(Protocol):
    """Says how many partitions a topic has."""

    def __call__(self, topic: str) -> int: ...


@dataclass(frozen=True, slots=True)
class EncodedRun:
    """Batches of one partition in order, and how many records they hold."""

    where: TopicPartition
    batches: list[bytearray] | StagedBatches
    record_count: int

    @property
    def size_bytes(self) -> int:
        """What the batches take."""
        if isinstance(self.batches, StagedBatches):
            return self.batches.size_bytes
        return sum(len(batch) for batch in self.batches)


@dataclass(slots=True)
class RowEncoder:
    """Encodes the rows of one task."""

    plan: SinkPlan
    count_of: PartitionCounts
    timestamp_ms: int
    """For rows that have none."""
    _turn: int = 0
    _encoding: TableEncoding = field(init=False)

    def __post_init__(self) -> None:
        producer = self.plan.producer
        self._encoding = TableEncoding(
            batch_bytes=producer.batch_size,
            compression=producer.compression,
            level=producer.compression_level,
        )

    def encode(self, rows: Iterable[pyarrow.RecordBatch]) -> Iterator[list[EncodedRun]]:
        """The batches of all rows, some megabytes of rows at a time."""
        import pyarrow

        gathered: list[pyarrow.RecordBatch] = []
        size_bytes = 0
        for batch in rows:
            if not batch.num_rows:
                continue
            gathered.append(batch.select(list(self.plan.columns)))
            size_bytes += gathered[-1].nbytes
            if size_bytes >= RUN_BYTES:
                yield list(self._encode_some(pyarrow.Table.from_batches(gathered)))
                gathered, size_bytes = [], 0
        if gathered:
            yield list(self._encode_some(pyarrow.Table.from_batches(gathered)))

    def _encode_some(self, table: pyarrow.Table) -> Iterator[EncodedRun]:
        for topic, rows in self._by_topic(table):
            count = self.count_of(topic)
            for partition, part in _by_value(rows, self._places(topic, rows, count)):
                named = [name for name in _ENCODED if name in part.column_names]
                batches = encode_table(part.select(named), self.timestamp_ms, self._encoding)
                where = TopicPartition(topic, partition)
                yield EncodedRun(where, list(batches), part.num_rows)

    def _by_topic(self, table: pyarrow.Table) -> Iterator[tuple[str, pyarrow.Table]]:
        import pyarrow.compute as compute

        if self.plan.topic is not None:
            yield self.plan.topic, table
            return
        topics = table.column("topic")
        if topics.null_count:
            raise InvalidRecord("a row has no topic: its column topic is null")
        for topic in compute.unique(topics).to_pylist():
            yield topic, table.filter(compute.equal(topics, topic))

    def _places(self, topic: str, rows: pyarrow.Table, count: int) -> pyarrow.Array:
        """For each row its partition."""
        import pyarrow
        import pyarrow.compute as compute

        placed = place_table(rows, count)
        if self.plan.producer.partitioner_ignore_keys:
            placed = pyarrow.repeat(pyarrow.scalar(-1, pyarrow.int32()), rows.num_rows)
        self._turn += 1
        spread = pyarrow.scalar(self._turn % count, pyarrow.int32())
        placed = compute.if_else(compute.less(placed, 0), spread, placed)
        if "partition" not in rows.column_names:
            return placed
        named = rows.column("partition").combine_chunks()
        for extreme in compute.min_max(named).as_py().values():
            if extreme is not None and not 0 <= extreme < count:
                raise TopicNotFound(topic, extreme)
        return compute.coalesce(named, placed)


def _by_value(rows: pyarrow.Table, values: pyarrow.Array) -> Iterator[tuple[int, pyarrow.Table]]:
    """The rows of each value, in their order."""
    import pyarrow.compute as compute

    counts = sorted((row["values"], row["counts"]) for row in _counts(values))
    if len(counts) > 1:
        rows = rows.take(compute.array_sort_indices(values))  # which keeps the order of equals
    first = 0
    for value, count in counts:
        yield value, rows.slice(first, count)
        first += count


def _counts(values: pyarrow.Array) -> list[dict[str, int]]:
    import pyarrow.compute as compute

    return list(compute.value_counts(values).to_pylist())
