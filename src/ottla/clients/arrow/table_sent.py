"""What became of a table that was sent: where its records are, and what went wrong."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from ottla.clients.failures import Fenced, TableNotSent
from ottla.clients.producer.batch import ProducerBatch
from ottla.errors import OttlaError


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets [start, end)."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PartitionSent:
    """The records of a table that one partition has, in the order of the table's rows."""

    partition: int
    record_count: int
    ranges: tuple[OffsetRange, ...]
    """One, unless others wrote in between; none where no broker says (acks=0)."""


@dataclass(frozen=True, slots=True)
class TableSent:
    """A table's records, by partition."""

    topic: str
    partitions: tuple[PartitionSent, ...]

    @property
    def record_count(self) -> int:
        """How many were written in all."""
        return sum(each.record_count for each in self.partitions)


class Tally:
    """Counts the batches of one table as their answers come."""

    __slots__ = ("_counts", "_error", "_failed_count", "_ranges", "_topic", "_waiting")

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._waiting: deque[ProducerBatch] = deque()
        self._counts: dict[int, int] = {}
        self._ranges: dict[int, list[OffsetRange]] = {}
        self._error: OttlaError | None = None
        self._failed_count = 0

    @property
    def error(self) -> OttlaError | None:
        """The first that came."""
        return self._error

    @property
    def waiting(self) -> ProducerBatch | None:
        """The oldest batch that has no answer yet; those before it are counted."""
        while self._waiting:
            if not self._waiting[0].is_done:
                return self._waiting[0]
            self._count(self._waiting.popleft())
        return None

    def add(self, batch: ProducerBatch) -> None:
        """One more is on its way."""
        self._waiting.append(batch)

    def stop(self, error: OttlaError) -> None:
        """No more will come."""
        self._error = self._error or error

    def result(self) -> TableSent:
        """What was sent, when no batch waits; TableNotSent where something went wrong."""
        sent = TableSent(
            self._topic,
            tuple(
                PartitionSent(partition, count, tuple(self._ranges.get(partition, ())))
                for partition, count in sorted(self._counts.items())
            ),
        )
        if self._error is None:
            return sent
        if isinstance(self._error, Fenced) or not (self._counts or self._failed_count):
            raise self._error
        raise TableNotSent(self._error, sent, self._failed_count) from self._error

    def _count(self, batch: ProducerBatch) -> None:
        for _, child in batch.children:
            self._count(child)
        if batch.children:
            return
        if batch.error is not None:
            self._error = self._error or batch.error
            self._failed_count += batch.record_count
            return
        partition = batch.partition
        self._counts[partition] = self._counts.get(partition, 0) + batch.record_count
        if batch.base_offset < 0:
            return
        ranges = self._ranges.setdefault(partition, [])
        start, end = batch.base_offset, batch.base_offset + batch.record_count
        if ranges and ranges[-1].end == start:
            start = ranges.pop().start
        ranges.append(OffsetRange(start, end))
