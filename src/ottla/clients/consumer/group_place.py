"""A consumer's place in its group, and the offsets it commits: what others need to speak for it."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.model.ids import NO_LEADER_EPOCH


@dataclass(frozen=True, slots=True)
class GroupPlace:
    """Who a consumer is in its group; without a member id, somebody outside of it."""

    group_id: str
    generation: int = -1
    """Or, in the newer protocol, the member's epoch."""
    member_id: str = ""
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """The next offset to read, the epoch of the leader it was learnt from, and a note."""

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_LEADER_EPOCH
