"""A group of the classic protocol, whose leader computes the assignment.

What must stay true:
1. A generation's assignment is handed out only after the record of that generation is written.
2. `generation` never goes down while the group lives.
3. Only a group in PREPARING has members with a parked join, only one in COMPLETING parked syncs.

Does not know requests, timers or records.
"""

from __future__ import annotations

from enum import Enum

from ottla.coordination.group.classic_member import ClassicMember
from ottla.coordination.group.commit_rules import Committer, Refusal, no_refusal
from ottla.coordination.group.embedded_protocol import subscribed_topics
from ottla.coordination.group.topics import Topics
from ottla.errors import ErrorCode, ProtocolError, RequestFailed

CONSUMER_PROTOCOL_TYPE = "consumer"


class ClassicState(Enum):
    """Where a classic group stands, by the word clients know."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


class ClassicGroup:
    """The members of a classic group and the generation they are in."""

    __slots__ = (
        "generation",
        "group_id",
        "has_newcomer",
        "initial_delay_left_ms",
        "leader",
        "members",
        "needs_rebalance",
        "pending",
        "protocol",
        "protocol_type",
        "replacement",
        "state",
        "state_timestamp_ms",
        "static_members",
        "subscribed",
        "unsynced",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.generation = 0
        self.protocol_type: str | None = None
        """None for a simple group, which only keeps offsets."""
        self.protocol: str | None = None
        self.leader: str | None = None
        self.state = ClassicState.EMPTY
        self.state_timestamp_ms: int | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        self.pending: set[str] = set()
        """Ids that were given out and have not joined yet."""
        self.unsynced: set[str] = set()
        """Members that have not asked for the assignment of this generation yet."""
        self.initial_delay_left_ms: int | None = None
        """How much longer the first join may be delayed; None outside of a first join."""
        self.has_newcomer = False
        self.needs_rebalance = False
        """Was a consumer group: what its last member of the new protocol had is with nobody."""
        self.replacement: ClassicMember | None = None
        """Takes the place of a static member once the record that says so is replayed."""
        self.subscribed: frozenset[str] | None = None
        """The topics the members read, where they can be known."""

    @property
    def type_name(self) -> str:
        return "classic"

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def is_unused(self) -> bool:
        """Whether, without offsets, the group may be forgotten."""
        return self.is_empty and not self.pending

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((each.rebalance_timeout_ms for each in self.members.values()), default=0)

    @property
    def joined_count(self) -> int:
        return sum(each.joining is not None for each in self.members.values())

    def have_all_joined(self) -> bool:
        return not self.pending and all(each.joining for each in self.members.values())

    def supports(self, protocol_type: str, names: list[str]) -> bool:
        """Whether a member with these protocols can be in the group with the others."""
        if not self.members:
            # Also where the record that says that the group is empty could not be written yet.
            return bool(protocol_type) and bool(names)
        if self.protocol_type != protocol_type:
            return False
        return not self._shared_protocols().isdisjoint(names)

    def _shared_protocols(self) -> set[str]:
        shared: set[str] | None = None
        for member in self.members.values():
            names = {name for name, _ in member.protocols}
            shared = names if shared is None else shared & names
        return shared or set()

    def select_protocol(self, *, instead: ClassicMember | None = None) -> str:
        """The protocol most members prefer among those all support.

        `instead` stands for the member with the same instance id.
        """
        voters = [
            instead if instead and each.instance_id == instead.instance_id else each
            for each in self.members.values()
        ]
        shared = set.intersection(*({name for name, _ in each.protocols} for each in voters))
        votes: dict[str, int] = {}
        for each in voters:
            choice = each.vote(shared)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def check_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
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

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.member_id] = member
        self.pending.discard(member.member_id)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> None:
        """Forget a member or a pending id."""
        self.pending.discard(member_id)
        self.unsynced.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return
        if member.instance_id is not None:
            del self.static_members[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def replace(self, old_member_id: str, member: ClassicMember) -> None:
        """Put a member in the place of another one of the same instance id."""
        assert member.instance_id is not None
        assert self.members[old_member_id].instance_id == member.instance_id
        self.members = {
            member.member_id if each == old_member_id else each: (
                member if each == old_member_id else other
            )
            for each, other in self.members.items()
        }
        self.static_members[member.instance_id] = member.member_id
        if self.leader == old_member_id:
            self.leader = member.member_id
        if old_member_id in self.unsynced:
            self.unsynced.remove(old_member_id)
            self.unsynced.add(member.member_id)

    def elect_joined_leader(self) -> bool:
        """Make sure that the leader has joined; False where nobody has."""
        current = self.members.get(self.leader) if self.leader is not None else None
        if current is not None and current.joining is not None:
            return True
        joined = next((each for each in self.members.values() if each.joining is not None), None)
        if joined is None:
            return False
        self.leader = joined.member_id
        return True

    def note_subscriptions(self) -> None:
        """Work out which topics the members read, from what they say in the chosen protocol."""
        self.subscribed = None
        if not self.uses_consumer_protocol:
            return
        try:
            self.subscribed = frozenset(
                topic
                for each in self.members.values()
                for topic in subscribed_topics(each.metadata_in(self.protocol))
            )
        except ProtocolError:
            pass  # a client with its own encoding: its topics cannot be known

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether the members read the topic; where that cannot be known, assume that they do."""
        if self.subscribed is not None:
            return topic in self.subscribed
        return self.uses_consumer_protocol

    def check_commit(self, committer: Committer) -> None:
        """Refuse a commit that does not come from a member of this generation.

        Transactional commits of old clients say nothing of the member, and are believed.
        """
        if committer.generation < 0 and self.is_empty:
            return
        if committer.claims_membership:
            self.check_member(committer.member_id, committer.instance_id)
            if committer.generation != self.generation:
                raise RequestFailed(ErrorCode.ILLEGAL_GENERATION)
        elif not committer.is_transactional and not self.is_empty:
            raise RequestFailed(ErrorCode.UNKNOWN_MEMBER_ID)
        if not committer.is_transactional and self.state is ClassicState.COMPLETING:
            raise RequestFailed(ErrorCode.REBALANCE_IN_PROGRESS)

    def commit_refusal(self, _committer: Committer, _topics: Topics) -> Refusal:
        """A commit that is allowed is allowed for every partition."""
        return no_refusal

    def check_fetch(self, _member_id: str | None, _member_epoch: int) -> None:
        """Anybody may read the offsets of a classic group."""

    def check_offset_delete(self) -> None:
        """Offsets of a group with members may go only where it is known what the members read."""
        if not self.is_empty and not self.uses_consumer_protocol:
            raise RequestFailed(ErrorCode.NON_EMPTY_GROUP)

    def unused_since_ms(self, commit_timestamp_ms: int) -> int | None:
        """From when on an offset of a topic the group does not read ages; None: it does not.

        A group with members keeps what it committed unless all its subscriptions are known, which
        they are only while it is stable.
        """
        if self.protocol_type is None:
            return commit_timestamp_ms
        if self.is_empty:
            if self.state_timestamp_ms is None:  # written by a version that did not say
                return commit_timestamp_ms
            return max(self.state_timestamp_ms, commit_timestamp_ms)
        if self.state is ClassicState.STABLE and self.subscribed is not None:
            return commit_timestamp_ms
        return None
