"""A group of the consumer protocol, whose coordinator computes the assignment.

The group's epoch grows when who is in it, or what they read, changes. The target is computed for
an epoch, and each member moves to it at its own pace.

What must stay true:
1. `owners` names for each partition the one member that has it, assigned or being given up.
2. `target_epoch` <= `epoch`, and neither goes down while the group lives.

Does not know requests, timers or records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ottla.coordination.group.assignors.spec import PartitionKey, Partitions
from ottla.coordination.group.commit_rules import Committer, Refusal, no_refusal
from ottla.coordination.group.consumer_member import ConsumerMember
from ottla.coordination.group.topics import Topics
from ottla.errors import ErrorCode, RequestFailed

_COMMIT_VERSION_MIN: Final = 9
"""The first version of OffsetCommit in which a member's epoch can be told to be stale."""


class ResolvedPattern(msgspec.Struct, frozen=True):
    """The topics a pattern matched, and when that was found out."""

    topics: frozenset[str]
    resolved_ms: int


class ConsumerGroup:
    """The members of a consumer group and the partitions they have and should have."""

    __slots__ = (
        "awaiting_rejoin",
        "empty_since_ms",
        "epoch",
        "group_id",
        "has_partition_metadata",
        "members",
        "metadata_hash",
        "owners",
        "patterns",
        "static_members",
        "target",
        "target_epoch",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.metadata_hash = 0
        """Stands for the topics the group reads as they were when the epoch began."""
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}
        self.target_epoch = 0
        self.target: dict[str, Partitions] = {}
        self.owners: dict[PartitionKey, str] = {}
        self.patterns: dict[str, ResolvedPattern] = {}
        self.has_partition_metadata = False
        """Whether an older version left a record that must go with the group."""
        self.empty_since_ms: int | None = None
        """When the group was first seen to have no members; not kept in the log."""
        self.awaiting_rejoin: set[str] = set()
        """Classic members that were told to join again; not kept in the log."""

    def copy(self) -> ConsumerGroup:
        """Another group that is the same now and may become different."""
        other = ConsumerGroup(self.group_id)
        other.epoch = self.epoch
        other.metadata_hash = self.metadata_hash
        other.members = dict(self.members)
        other.static_members = dict(self.static_members)
        other.target_epoch = self.target_epoch
        other.target = dict(self.target)
        other.owners = dict(self.owners)
        other.patterns = dict(self.patterns)
        other.has_partition_metadata = self.has_partition_metadata
        return other

    # --- questions --------------------------------------------------------------------------------

    @property
    def type_name(self) -> str:
        return "consumer"

    @property
    def protocol_type(self) -> str:
        return "consumer"

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def is_unused(self) -> bool:
        """Whether, without offsets, the group may be forgotten."""
        return self.is_empty

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        if all(each.is_settled_at(self.target_epoch) for each in self.members.values()):
            return "Stable"
        return "Reconciling"

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """What a member reads: the topics it names and those its pattern matched."""
        topics = frozenset(member.topics)
        if member.pattern is not None and member.pattern in self.patterns:
            topics |= self.patterns[member.pattern].topics
        return topics

    def subscribed_topics(self) -> frozenset[str]:
        """What any member reads."""
        subscriptions = {(each.topics, each.pattern): each for each in self.members.values()}
        return frozenset().union(*map(self.topics_of, subscriptions.values()))

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in self.topics_of(each) for each in self.members.values())

    def is_free_for(self, partition: PartitionKey, member_id: str) -> bool:
        """Whether no other member has the partition."""
        return self.owners.get(partition, member_id) == member_id

    def awaits_others(self, member: ConsumerMember) -> bool:
        """Whether something the member should have is still with another one."""
        return any(
            partition not in member.assigned and not self.is_free_for(partition, member.member_id)
            for partition in self.target.get(member.member_id, ())
        )

    def check_member(self, member_id: str, instance_id: str | None) -> ConsumerMember:
        """The member a request speaks for; refuses strangers and fenced instances."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                raise RequestFailed(ErrorCode.UNKNOWN_MEMBER_ID)
            if current != member_id:
                raise RequestFailed(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise RequestFailed(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def supports_classic(self, protocol_type: str, names: list[str]) -> bool:
        """Whether a classic member with these protocols can be in the group with the others."""
        shared = set(names)
        for member in self.members.values():
            if member.classic is not None:
                shared &= {name for name, _ in member.classic.protocols}
        return protocol_type == self.protocol_type and bool(shared)

    # --- offsets ----------------------------------------------------------------------------------

    def check_commit(self, committer: Committer) -> None:
        """Refuse a commit that does not come from a member."""
        if committer.generation < 0 and self.is_empty:
            return
        if committer.is_transactional and not committer.claims_membership:
            return
        member = self.members.get(committer.member_id)
        if member is None:
            raise RequestFailed(ErrorCode.UNKNOWN_MEMBER_ID)
        if not (committer.is_transactional or member.is_classic) and (
            committer.version < _COMMIT_VERSION_MIN
        ):
            raise RequestFailed(ErrorCode.UNSUPPORTED_VERSION)
        if member.is_classic and committer.generation != member.epoch:
            raise RequestFailed(ErrorCode.ILLEGAL_GENERATION)
        if committer.generation > member.epoch or committer.generation < 0:
            raise RequestFailed(ErrorCode.STALE_MEMBER_EPOCH)

    def commit_refusal(self, committer: Committer, topics: Topics) -> Refusal:
        """A member that is behind may commit what it has had since the epoch it knows, or before.

        Nobody else can have had such a partition in between.
        """
        member = self.members.get(committer.member_id)
        if member is None or committer.generation >= member.epoch:
            return no_refusal
        stale = (
            ErrorCode.ILLEGAL_GENERATION
            if committer.is_transactional
            else ErrorCode.STALE_MEMBER_EPOCH
        )

        def refuse(topic: str, partition: int) -> ErrorCode:
            key = (topics.id_of(topic) or b"", partition)
            since = member.assigned.get(key, member.revoking.get(key))
            return ErrorCode.NONE if since is not None and since <= committer.generation else stale

        return refuse

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """A member that reads its offsets must be up to date; anybody else may read them."""
        if not member_id and member_epoch < 0:
            return
        member = self.members.get(member_id or "")
        if member is None:
            raise RequestFailed(ErrorCode.UNKNOWN_MEMBER_ID)
        if member_epoch != member.epoch:
            raise RequestFailed(
                ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH
            )

    def check_offset_delete(self) -> None:
        """What the members read is always known, so offsets of other topics may go."""

    def unused_since_ms(self, commit_timestamp_ms: int) -> int | None:
        """From when on an offset of a topic the group does not read ages; None: it does not."""
        if not self.is_empty:
            return commit_timestamp_ms
        if self.empty_since_ms is None:
            return None
        return max(self.empty_since_ms, commit_timestamp_ms)

    # --- changes ----------------------------------------------------------------------------------

    def note_emptiness(self, now_ms: int) -> None:
        """Remember since when the group has no members."""
        if not self.is_empty:
            self.empty_since_ms = None
        elif self.empty_since_ms is None:
            self.empty_since_ms = now_ms

    def put(self, member: ConsumerMember) -> None:
        """Add a member, or put it in the place of what it was before."""
        old = self.members.get(member.member_id)
        if old is not None:
            self._release(old)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self._claim(member.member_id, member.assigned)
        self._claim(member.member_id, member.revoking)

    def drop(self, member_id: str) -> None:
        """Remove a member; what it had is free."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._release(member)
        self.awaiting_rejoin.discard(member_id)

    def _claim(self, member_id: str, partitions: Mapping[PartitionKey, int]) -> None:
        for each in partitions:
            self.owners[each] = member_id

    def _release(self, member: ConsumerMember) -> None:
        for each in (*member.assigned, *member.revoking):
            if self.owners.get(each) == member.member_id:
                del self.owners[each]
        if member.instance_id is not None and (
            self.static_members.get(member.instance_id) == member.member_id
        ):
            del self.static_members[member.instance_id]
