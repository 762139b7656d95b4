"""What a consumer has done so far, in numbers a person can read."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ottla.model.ids import TopicPartition


class ConsumerMetrics(msgspec.Struct, frozen=True):
    """A snapshot; counts are since the consumer was opened."""

    records_returned: int
    bytes_fetched: int
    fetches: int
    polls: int
    commits: int
    rebalances: int
    buffered_bytes: int
    lag: Mapping[TopicPartition, int]
    """Offsets between the position and the end, where both are known."""

    @property
    def lag_total(self) -> int:
        """Over all partitions."""
        return sum(self.lag.values())


class ConsumerCounters:
    """The counts behind the snapshot."""

    __slots__ = ("bytes_fetched", "fetches", "polls", "records_returned")

    def __init__(self) -> None:
        self.records_returned = 0
        self.bytes_fetched = 0
        self.fetches = 0
        self.polls = 0
