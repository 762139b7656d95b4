"""A follower that has all of a partition rests there: nothing is read for it, nothing is noted.

Its requests go on, for what else is in its session. So whatever happens to the partition ends the
rest first: then the follower is noted to have had everything until its last request, and the next
reading looks at the partition again. Thousands of partitions in which nothing happens cost nothing.

What must stay true: a replica rests only where it is in sync and was told all there is to tell, and
everything that a reading could tell it later wakes the partition's watches.
"""

from __future__ import annotations

from ottla.broker.fetch_sessions import FetchSession, FetchTarget
from ottla.broker.partition import Partition
from ottla.model.ids import BrokerId
from ottla.protocol.messages.fetch import PartitionData


class Rest:
    """One follower in one partition, until something happens there."""

    __slots__ = ("_follower", "_in_sync", "_partition", "_session", "target")

    def __init__(
        self, partition: Partition, follower: BrokerId, session: FetchSession, target: FetchTarget
    ) -> None:
        self.target = target
        self._partition = partition
        self._in_sync = partition.in_sync
        self._follower = follower
        self._session = session
        partition.watch(self)

    def added(self, _size_bytes: int) -> None:
        """Something was committed."""
        self.wake()

    def wake(self) -> None:
        """Something happened."""
        self.end()
        self._session.woke(self)

    def end(self) -> None:
        """No more is waited for."""
        self._partition.unwatch(self)
        in_sync = self._in_sync
        if in_sync is not None and in_sync is self._partition.in_sync:
            in_sync.rested(self._follower, self._session.last_used_ms)


def may_rest(
    partition: Partition, follower: BrokerId, target: FetchTarget, told: PartitionData
) -> bool:
    """Whether nothing is left to tell a follower that was just answered this."""
    in_sync = partition.in_sync
    return not (
        told.error_code
        or told.records
        or told.diverging_epoch is not None
        or in_sync is None
        or in_sync.proposal is not None
        or follower not in in_sync.members
        or target.fetch_offset != partition.log.end_offset
    )
