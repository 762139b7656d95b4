"""What became of the records that `ottla produce` sent: where they are, or why one is not."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ottla.clients.producer.batch import UNKNOWN_OFFSET, RecordMetadata
from ottla.errors import OttlaError


@dataclass(slots=True)
class Run:
    """Records that lie one behind the other in a partition; the offset is -1 where nobody said."""

    partition: int
    base_offset: int
    record_count: int

    def takes(self, metadata: RecordMetadata) -> bool:
        """Whether the record is the next of this run; if so, it is counted."""
        unknown = self.base_offset == UNKNOWN_OFFSET
        expected = UNKNOWN_OFFSET if unknown else self.base_offset + self.record_count
        is_next = metadata.partition == self.partition and metadata.offset == expected
        self.record_count += is_next
        return is_next


class Deliveries:
    """Hears of every record. `news` is set when there is something to look at."""

    __slots__ = ("_runs", "error", "news", "partitions", "record_count")

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self.news = asyncio.Event()
        self.error: OttlaError | None = None
        """The first that was heard of."""
        self.record_count = 0
        self.partitions: set[int] = set()

    def hear(self, metadata: RecordMetadata | None, error: OttlaError | None) -> None:
        """A record is written, or given up."""
        self.news.set()
        if metadata is None:
            self.error = self.error or error
            return
        self.record_count += 1
        self.partitions.add(metadata.partition)
        if not self._runs or not self._runs[-1].takes(metadata):
            self._runs.append(Run(metadata.partition, metadata.offset, 1))

    def take_runs(self) -> list[Run]:
        """What was written since this was last asked."""
        self.news.clear()
        runs, self._runs = self._runs, []
        return runs
