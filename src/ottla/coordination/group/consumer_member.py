"""A member of a consumer group: what it told of itself, and how far it is with its assignment.

A member never changes: what happens to it makes another one. Does not know the group.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

import msgspec

from ottla.coordination.group.assignors.spec import PartitionKey
from ottla.coordination.group.classic_member import Protocols

LEFT_FOR_GOOD: Final = -1
"""The epoch a member sends to leave."""
LEFT_FOR_A_WHILE: Final = -2
"""The epoch a static member sends that will be back."""
JOINING: Final = 0
"""The epoch a member sends to join."""


class MemberState(IntEnum):
    """How far a member is with its assignment, by the number its record has."""

    STABLE = 0
    """It has all that its epoch gives it."""
    UNREVOKED = 1
    """It was asked to give up partitions and has not said that it did."""
    UNRELEASED = 2
    """Some of what it should have is still with others."""
    UNKNOWN = 127


class ClassicSide(msgspec.Struct, frozen=True):
    """What is known of a member that speaks the classic protocol in a consumer group."""

    session_timeout_ms: int
    protocols: Protocols


class ConsumerMember(msgspec.Struct, frozen=True):
    """One member."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    classic: ClassicSide | None = None
    """None for a member of the consumer protocol."""

    epoch: int = JOINING
    previous_epoch: int = JOINING
    state: MemberState = MemberState.STABLE
    assigned: Mapping[PartitionKey, int] = msgspec.field(default_factory=dict)
    """What the member may read, each with the epoch in which it was assigned."""
    revoking: Mapping[PartitionKey, int] = msgspec.field(default_factory=dict)
    """What the member was asked to give up."""

    @property
    def is_classic(self) -> bool:
        return self.classic is not None

    def is_settled_at(self, epoch: int) -> bool:
        """Whether the member has everything that an epoch of the target gives it."""
        return self.state is MemberState.STABLE and self.epoch == epoch
