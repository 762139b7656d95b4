"""What the driver asks of a cluster, for callers that may block: partitions, offsets, commits.

Connects when first asked. Is not pickled with what holds it: a copy in another process connects
for itself.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from ottla.clients.blocking.loop_thread import LoopThread
from ottla.clients.client import Client
from ottla.clients.connection_settings import ConnectionSettings, client_for
from ottla.clients.group_offsets import CommittedOffset, by_topic, commit_offsets
from ottla.clients.offsets import list_offsets, offset_ranges
from ottla.model.ids import Offset, TopicPartition
from ottla.spark.arrivals import wait_for_records
from ottla.spark.bounds import Bound, check_covers, resolved
from ottla.spark.offsets import Offsets
from ottla.spark.selection import Selection, partitions_of

T = TypeVar("T")
Ranges = dict[TopicPartition, tuple[int, int]]


class ClusterAccess:
    """The cluster as the planning half of a reader sees it."""

    __slots__ = ("_client", "_committed_only", "_loop", "_settings")

    def __init__(self, settings: ConnectionSettings, *, committed_only: bool) -> None:
        self._settings = settings
        self._committed_only = committed_only
        self._loop: LoopThread | None = None
        self._client: Client | None = None

    def partitions(self, selection: Selection) -> set[TopicPartition]:
        """What there is to read now."""
        return self._run(partitions_of(self._connected(), selection))

    def ranges(self, partitions: set[TopicPartition]) -> Ranges:
        """For each partition the range [start, end) of offsets a reader can have."""
        return self._run(self._ranges(partitions))

    def resolve(self, bound: Bound, ranges: Ranges) -> Offsets:
        """The offsets a bound means in these partitions."""
        check_covers(bound, set(ranges))
        at_times = self._run(self._at_times(bound, ranges)) if bound.is_by_time else {}
        return resolved(bound, ranges, at_times)

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Tells the group's coordinator how far it has come."""
        committed = {where: CommittedOffset(Offset(end)) for where, end in offsets.items()}
        self._run(commit_offsets(self._connected(), group, committed))

    def wait_for_records(self, ends: Offsets, wait_ms: int) -> bool:
        """Whether there are records beyond these ends within `wait_ms`; returns when there are."""
        return self._run(
            wait_for_records(
                self._connected(), ends, wait_ms=wait_ms, committed_only=self._committed_only
            )
        )

    def close(self) -> None:
        """Disconnects; the next question connects again."""
        if self._loop is None or self._client is None:
            return
        self._loop.run(self._client.close())
        self._loop.stop()
        self._loop = self._client = None

    def __getstate__(self) -> tuple[ConnectionSettings, bool]:
        return self._settings, self._committed_only

    def __setstate__(self, state: tuple[ConnectionSettings, bool]) -> None:
        self._settings, self._committed_only = state
        self._loop = self._client = None

    def _connected(self) -> Client:
        if self._client is None:
            self._client = client_for(self._settings)
        return self._client

    def _run(self, question: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            self._loop = LoopThread("spark")
        return self._loop.run(question)

    async def _ranges(self, partitions: set[TopicPartition]) -> Ranges:
        found: Ranges = {}
        for topic, rows in by_topic(partitions).items():
            ranges = await offset_ranges(
                self._connected(),
                topic,
                [row.partition for row in rows],
                committed_only=self._committed_only,
            )
            found.update((TopicPartition(topic, number), each) for number, each in ranges.items())
        return found

    async def _at_times(self, bound: Bound, ranges: Ranges) -> Offsets:
        found: Offsets = {}
        for topic, rows in by_topic(ranges).items():
            times = {row.partition: _time_for(bound, row) for row in rows}
            listed = await list_offsets(self._connected(), topic, times)
            found.update((TopicPartition(topic, n), row.offset) for n, row in listed.items())
        return found


def _time_for(bound: Bound, where: TopicPartition) -> int:
    if bound.timestamp_ms is not None:
        return bound.timestamp_ms
    return bound.timestamps_ms[where]
