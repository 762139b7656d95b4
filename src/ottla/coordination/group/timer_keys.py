"""The names of the group coordinator's timers. The first word says what the timer is for."""

from __future__ import annotations

from typing import Final

from ottla.coordination.decision import TimerKey

SESSION: Final = "session"
JOIN: Final = "join"
SYNC: Final = "sync"
REBALANCE: Final = "rebalance"
REVOCATION: Final = "revocation"
REJOIN: Final = "rejoin"
RESYNC: Final = "resync"


def session(group_id: str, member_id: str) -> TimerKey:
    """A member must be heard of before this fires."""
    return (SESSION, group_id, member_id)


def join(group_id: str) -> TimerKey:
    """The members of a classic group must have joined before this fires."""
    return (JOIN, group_id)


def sync(group_id: str) -> TimerKey:
    """The members of a classic group must have asked for their assignment before this fires."""
    return (SYNC, group_id)


def rebalance(group_id: str) -> TimerKey:
    """A classic group that came out of a consumer group must begin a rebalance."""
    return (REBALANCE, group_id)


def revocation(group_id: str, member_id: str) -> TimerKey:
    """A member of a consumer group must have given up partitions before this fires."""
    return (REVOCATION, group_id, member_id)


def rejoin(group_id: str, member_id: str) -> TimerKey:
    """A classic member of a consumer group, told to rejoin, must have done so before this fires."""
    return (REJOIN, group_id, member_id)


def resync(group_id: str, member_id: str) -> TimerKey:
    """A classic member of a consumer group must fetch its assignment before this fires."""
    return (RESYNC, group_id, member_id)


def all_of_member(group_id: str, member_id: str) -> tuple[TimerKey, ...]:
    """Every timer a member of a consumer group may have."""
    return (
        session(group_id, member_id),
        revocation(group_id, member_id),
        rejoin(group_id, member_id),
        resync(group_id, member_id),
    )
