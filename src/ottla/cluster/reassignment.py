"""Moving a partition to other brokers, step by step, so that it is never short of replicas. Pure.

A move is written in the topic's node as the replicas (old and new together), those being added and
those being removed; whoever reads it can go on with it. Phases:
 A  the replicas are all of the old and the new ones; the new ones copy.
 B  every wanted replica is in sync: the leader moves to a wanted replica if it is not on one, the
    removed ones leave the set in sync, and the replicas become just the wanted ones, all at once.
Nothing is deleted from a broker before it is out of the replicas as they are written. A move can be
cancelled, or turned to other brokers, at any time; whoever is dropped by that leaves the set in
sync in the same multi, so that nobody is ever in sync who holds no replica.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ottla.cluster.election import Leadership, Situation
from ottla.cluster.image import PartitionImage
from ottla.errors import ErrorCode, InvalidReplicaAssignment, RequestFailed
from ottla.model.ids import BrokerId


class Assignment(msgspec.Struct, frozen=True):
    """The replicas of a partition, the preferred leader first, and the move they are in."""

    replicas: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()

    @property
    def is_moving(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[BrokerId, ...]:
        """The replicas at the end of the move."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def origin(self) -> tuple[BrokerId, ...]:
        """The replicas before the move."""
        return tuple(broker for broker in self.replicas if broker not in self.adding)


class Move(msgspec.Struct, frozen=True):
    """What to write at once: the assignment, and the leadership where that must change with it."""

    assignment: Assignment
    leadership: Leadership | None = None

    def abandons(self, before: Assignment) -> tuple[BrokerId, ...]:
        """The brokers that had begun to copy, and are not to hold the partition after all."""
        return tuple(b for b in before.replicas if b not in self.assignment.replicas)


def assignment_of(partition: PartitionImage) -> Assignment:
    """How a partition is assigned now."""
    return Assignment(partition.replicas, partition.adding_replicas, partition.removing_replicas)


def begin(partition: PartitionImage, wanted: Sequence[BrokerId], situation: Situation) -> Move:
    """Phase A towards the wanted replicas, also from the middle of another move.

    InvalidReplicaAssignment where the wish names nobody, somebody twice, or a new broker that does
    not live.
    """
    if not wanted:
        raise InvalidReplicaAssignment("a partition needs at least one replica")
    if len(set(wanted)) != len(wanted):
        raise InvalidReplicaAssignment(f"a broker stands twice in {list(wanted)}")
    origin = assignment_of(partition).origin
    adding = tuple(broker for broker in wanted if broker not in origin)
    if absent := [broker for broker in adding if broker not in situation.alive]:
        raise InvalidReplicaAssignment(f"no such broker: {', '.join(map(str, absent))}")
    removing = tuple(broker for broker in origin if broker not in wanted)
    after = Assignment((*wanted, *removing), adding, removing)
    return Move(after, _confined(partition, after.replicas, situation))


def cancel(partition: PartitionImage, situation: Situation) -> Move:
    """Back to the replicas before the move, at once; the new ones go.

    NO_REASSIGNMENT_IN_PROGRESS where there is none, ELIGIBLE_LEADERS_NOT_AVAILABLE where none of
    the old replicas is in sync and could lead.
    """
    assignment = assignment_of(partition)
    if not assignment.is_moving:
        raise RequestFailed(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    return begin(partition, assignment.origin, situation)


def is_ready(partition: PartitionImage) -> bool:
    """Whether phase B may begin: every replica that is to stay is in sync."""
    assignment = assignment_of(partition)
    return assignment.is_moving and set(assignment.target) <= set(partition.isr)


def lead_target(partition: PartitionImage, situation: Situation) -> Leadership | None:
    """Phase B's leader and set in sync: among those that stay. None where it is so already.

    To be asked only when the move is ready. ELIGIBLE_LEADERS_NOT_AVAILABLE where none of those
    that stay could lead; the move then waits.
    """
    return _confined(partition, assignment_of(partition).target, situation)


def next_step(partition: PartitionImage, situation: Situation) -> Move | None:
    """All of phase B in one step, which the store takes wholly or not at all; None while it cannot
    be taken yet."""
    if not is_ready(partition):
        return None
    try:
        leadership = lead_target(partition, situation)
    except RequestFailed:
        return None
    return Move(Assignment(assignment_of(partition).target), leadership)


def _confined(
    partition: PartitionImage, replicas: Sequence[BrokerId], situation: Situation
) -> Leadership | None:
    """The leadership with nobody but these replicas in it; None where it is so already."""
    isr = tuple(broker for broker in partition.isr if broker in replicas)
    if isr == partition.isr:
        return None
    if partition.leader in isr:
        return Leadership(partition.leader, isr, partition.recovery_state)
    for broker in replicas:
        if broker in isr and situation.can_lead(broker):
            return Leadership(broker, isr, partition.recovery_state)
    raise RequestFailed(
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        f"of {list(replicas)} none lives and is in sync: the partition would be without a leader",
    )
