"""Who is in sync with a leader, and how far all of them are: the leader's own reckoning. Pure.

What must stay true:
1. The high watermark counts every replica that is in the set, might be by now, or is about to be:
   a joining one counts from the moment its joining is proposed, a leaving one until its leaving is
   committed. So no answer of the metadata store, late or lost, can make it pass a member.
2. It never goes back, and never passes the leader's own end.
3. One change of the set is proposed at a time. What became of a proposal whose answer was lost is
   learned from the metadata, never guessed.
4. The leader is always in its set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from ottla.cluster.image import PartitionImage
from ottla.model.ids import BrokerId, Offset

UNKNOWN_END: Final = -1


class Follower(msgspec.Struct):
    """What the leader knows of one other replica."""

    caught_up_ms: int
    """When it last had all that the leader had; zero for one that never was seen to."""
    end_offset: int = UNKNOWN_END
    fetched_ms: int = 0
    leader_end_when_fetched: int = 0


class Proposal(msgspec.Struct, frozen=True):
    """A change of the set that the metadata store has not confirmed yet."""

    members: frozenset[BrokerId]
    partition_epoch: int
    """The version the state must still have for the change to happen."""


class InSync:
    """The replicas of one partition during one leader epoch."""

    def __init__(
        self,
        leader: BrokerId,
        image: PartitionImage,
        *,
        epoch_start_offset: Offset,
        now_ms: int,
    ) -> None:
        self.leader = leader
        self.members = frozenset(image.isr)
        self.partition_epoch = image.partition_epoch
        self.proposal: Proposal | None = None
        self.epoch_start_offset = epoch_start_offset
        # A member gets the benefit of the doubt for one lag period; others must show themselves,
        # or the high watermark would wait for the dead.
        self._followers = {
            replica: Follower(caught_up_ms=now_ms if replica in self.members else 0)
            for replica in image.replicas
            if replica != leader
        }

    @property
    def maximal(self) -> frozenset[BrokerId]:
        """Every broker that may be in the set as the metadata store has it."""
        if self.proposal is None:
            return self.members
        return self.members | self.proposal.members

    @property
    def followers(self) -> Mapping[BrokerId, Follower]:
        return self._followers

    @property
    def is_alone(self) -> bool:
        """Whether there is no other replica, and none is about to be."""
        return not self._followers and self.proposal is None

    def needed(self, replicas_min: int) -> int:
        """How many must be in sync where so many are asked for: no more than there are."""
        return min(replicas_min, len(self._followers) + 1)

    # --- what happens ---

    def fetched(self, replica: BrokerId, offset: int, leader_end: int, now_ms: int) -> None:
        """A follower asked for what comes at `offset`, so it has everything before."""
        follower = self._followers.get(replica)
        if follower is None:
            return
        if offset >= leader_end:
            follower.caught_up_ms = max(follower.caught_up_ms, now_ms)
        elif offset >= follower.leader_end_when_fetched:
            follower.caught_up_ms = max(follower.caught_up_ms, follower.fetched_ms)
        follower.end_offset = offset
        follower.fetched_ms = now_ms
        follower.leader_end_when_fetched = leader_end

    def rested(self, replica: BrokerId, until_ms: int) -> None:
        """A member that had everything asked on until then, while nothing was there to note."""
        follower = self._followers.get(replica)
        if follower is not None and replica in self.members:
            follower.caught_up_ms = max(follower.caught_up_ms, until_ms)
            follower.fetched_ms = max(follower.fetched_ms, until_ms)

    def reassigned(self, replicas: Iterable[BrokerId]) -> None:
        """The partition is held by other brokers now; new ones have to show themselves."""
        self._followers = {
            replica: self._followers.get(replica) or Follower(caught_up_ms=0)
            for replica in replicas
            if replica != self.leader
        }

    def gone(self, replicas: Iterable[BrokerId]) -> None:
        """These died, or were taken out of the set and may have: those of them that are not in it
        have to show themselves before they are waited for again."""
        for replica in replicas:
            follower = self._followers.get(replica)
            if follower is not None and replica not in self.members:
                follower.caught_up_ms = 0

    # --- the high watermark ---

    def high_watermark(self, leader_end: Offset, now_ms: int, lag_ms_max: int) -> Offset:
        """How far every replica is that counts."""
        lowest: int = leader_end
        for replica, follower in self._followers.items():
            if replica in self.maximal or self._is_close(follower, now_ms, lag_ms_max):
                lowest = min(lowest, follower.end_offset)
        return Offset(max(lowest, 0))

    def _is_close(self, follower: Follower, now_ms: int, lag_ms_max: int) -> bool:
        """Whether it keeps up and will be asked into the set; waiting for it costs nothing."""
        has_joined_epoch = follower.end_offset >= self.epoch_start_offset
        return has_joined_epoch and now_ms - follower.caught_up_ms <= lag_ms_max

    # --- changes of the set ---

    def lagging(self, leader_end: Offset, now_ms: int, lag_ms_max: int) -> frozenset[BrokerId]:
        """Members that have not had everything for too long."""
        return frozenset(
            replica
            for replica in self.members
            if (follower := self._followers.get(replica)) is not None
            and follower.end_offset != leader_end
            and now_ms - follower.caught_up_ms > lag_ms_max
        )

    def is_cut_off(self, lagging: frozenset[BrokerId], now_ms: int, lag_ms_max: int) -> bool:
        """Whether none of those who lag has asked for anything for too long.

        One that asks and is slow gets there; to hand over to it would throw away what it lacks.
        """
        return all(
            now_ms - max(follower.caught_up_ms, follower.fetched_ms) > lag_ms_max
            for replica in lagging
            if (follower := self._followers.get(replica)) is not None
        )

    def can_join(self, replica: BrokerId, high_watermark: Offset) -> bool:
        """Whether a follower outside of the set has all that is committed, and of this epoch."""
        follower = self._followers.get(replica)
        return (
            follower is not None
            and replica not in self.maximal
            and follower.end_offset >= high_watermark
            and follower.end_offset >= self.epoch_start_offset
        )

    def propose(self, members: Iterable[BrokerId]) -> Proposal:
        """Begins to change the set; the caller takes it to the metadata store."""
        assert self.proposal is None, "one change at a time"
        wanted = frozenset(members)
        assert self.leader in wanted, "a leader is in its own set"
        self.proposal = Proposal(wanted, self.partition_epoch)
        return self.proposal

    def confirmed(self, members: Iterable[BrokerId], partition_epoch: int) -> None:
        """The metadata says so: by answer to a proposal, or because somebody else changed it."""
        if partition_epoch <= self.partition_epoch:
            return
        before, self.members = self.members, frozenset(members)
        self.gone(before)
        self.partition_epoch = partition_epoch
        self.proposal = None

    def refused(self) -> None:
        """The proposal certainly did not happen, and may be made anew."""
        self.proposal = None
