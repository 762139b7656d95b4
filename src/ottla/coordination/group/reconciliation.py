"""Brings a member from what it has to what it should have, one safe step at a time.

What must stay true: a partition is given to a member only when no other member has it, and a
member counts as having a partition until it says that it has given it up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace

from ottla.coordination.group.assignors.spec import PartitionKey, Partitions
from ottla.coordination.group.consumer_member import ConsumerMember, MemberState
from ottla.errors import ErrorCode, RequestFailed


class Target(msgspec.Struct, frozen=True):
    """What a member should have in the end, and from which epoch on."""

    epoch: int
    partitions: Partitions


def reconcile(
    member: ConsumerMember,
    target: Target,
    owned: Partitions | None,
    is_free: Callable[[PartitionKey], bool],
) -> ConsumerMember:
    """The member after its next step towards the target.

    `owned` is what the member says it has, None where it said nothing; `is_free` tells whether no
    other member has a partition.
    """
    match member.state:
        case MemberState.STABLE:
            if member.epoch == target.epoch:
                return member
            epoch = member.epoch
        case MemberState.UNREVOKED:
            if _still_has(owned, member.revoking):
                return member
            epoch = member.epoch + 1
        case MemberState.UNRELEASED:
            epoch = member.epoch
        case MemberState.UNKNOWN:
            # Written by a version that knew more: only a member that starts over can be trusted.
            if owned is None or owned:
                raise RequestFailed(ErrorCode.FENCED_MEMBER_EPOCH)
            epoch = target.epoch
    return _step(member, epoch, target, owned, is_free)


def _step(
    member: ConsumerMember,
    epoch: int,
    target: Target,
    owned: Partitions | None,
    is_free: Callable[[PartitionKey], bool],
) -> ConsumerMember:
    kept = {each: since for each, since in member.assigned.items() if each in target.partitions}
    leaving = {each: since for each, since in member.assigned.items() if each not in kept}
    if leaving and _still_has(owned, leaving):
        return _moved(member, epoch, MemberState.UNREVOKED, kept, leaving)
    missing = target.partitions - kept.keys()
    arriving = {each: target.epoch for each in missing if is_free(each)}
    state = MemberState.STABLE if len(arriving) == len(missing) else MemberState.UNRELEASED
    return _moved(member, target.epoch, state, kept | arriving, {})


def _moved(
    member: ConsumerMember,
    epoch: int,
    state: MemberState,
    assigned: Mapping[PartitionKey, int],
    revoking: Mapping[PartitionKey, int],
) -> ConsumerMember:
    return replace(
        member,
        epoch=epoch,
        previous_epoch=member.previous_epoch if epoch == member.epoch else member.epoch,
        state=state,
        assigned=assigned,
        revoking=revoking,
    )


def _still_has(owned: Partitions | None, partitions: Mapping[PartitionKey, int]) -> bool:
    """Whether a member still has any of some partitions; one that says nothing has them."""
    return owned is None or not owned.isdisjoint(partitions)
