"""Which brokers hold the replicas of a partition. Pure: the random start is handed in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import zip_longest

import msgspec

from ottla.errors import InvalidReplicaAssignment, InvalidReplicationFactor
from ottla.model.ids import BrokerId


class Place(msgspec.Struct, frozen=True):
    """A broker and where it stands."""

    broker: BrokerId
    rack: str | None = None


class Turn(msgspec.Struct, frozen=True):
    """Where the round of brokers begins, and how far the followers begin from the leader.

    Drawn at random for each topic, so that small topics do not all land on the same brokers.
    """

    start: int = 0
    shift: int = 0


def place(
    places: Sequence[Place],
    partitions: range,
    replication_factor: int,
    turn: Turn,
) -> list[tuple[BrokerId, ...]]:
    """The replicas of each partition, the preferred leader first.

    Leaders go round the brokers. Followers begin `shift` brokers further and one further with each
    completed round, so that a broker's partitions are followed by all others in turn. Where brokers
    have racks, no rack gets a second replica before each has one.
    """
    if not 1 <= replication_factor <= len(places):
        raise InvalidReplicationFactor(
            f"{replication_factor} replicas were asked for; there are {len(places)} brokers"
        )
    circle = _alternating(places)
    return [_replicas(circle, index, replication_factor, turn) for index in partitions]


def check_assignments(
    assignments: Mapping[int, Sequence[int]], brokers: Mapping[BrokerId, object], first: int = 0
) -> list[tuple[BrokerId, ...]]:
    """The replicas a client asked for, in order of partition; InvalidReplicaAssignment if wrong."""
    if not assignments:
        raise InvalidReplicaAssignment("no partition is assigned to any broker")
    if sorted(assignments) != list(range(first, first + len(assignments))):
        raise InvalidReplicaAssignment(f"partitions must be numbered from {first} without a gap")
    replica_count = len(assignments[first])
    for index, replicas in assignments.items():
        if not replicas:
            raise InvalidReplicaAssignment(f"partition {index} is assigned to no broker")
        if len(set(replicas)) != len(replicas):
            raise InvalidReplicaAssignment(f"partition {index} names a broker twice")
        if len(replicas) != replica_count:
            raise InvalidReplicaAssignment("all partitions must have as many replicas")
        for broker in replicas:
            if broker not in brokers:
                raise InvalidReplicaAssignment(f"partition {index} names broker {broker}: unknown")
    return [tuple(map(BrokerId, replicas)) for _, replicas in sorted(assignments.items())]


def _alternating(places: Sequence[Place]) -> list[Place]:
    """The brokers in a circle, neighbours in different racks as far as possible."""
    racks: dict[str, list[Place]] = defaultdict(list)
    for each in sorted(places, key=lambda each: each.broker):
        racks[each.rack or ""].append(each)
    columns = zip_longest(*(racks[rack] for rack in sorted(racks)))
    return [each for column in columns for each in column if each is not None]


def _replicas(
    circle: Sequence[Place], index: int, replication_factor: int, turn: Turn
) -> tuple[BrokerId, ...]:
    size = len(circle)
    leader = (turn.start + index) % size
    chosen = [circle[leader]]
    shift = turn.shift + index // size
    others = [circle[(leader + 1 + (shift + step) % (size - 1)) % size] for step in range(size - 1)]
    racks_seen = {chosen[0].rack}
    rack_count = len({each.rack for each in circle})
    while len(chosen) < replication_factor:
        has_new_rack = len(racks_seen) < rack_count
        pick = next(each for each in others if not has_new_rack or each.rack not in racks_seen)
        others.remove(pick)
        chosen.append(pick)
        racks_seen.add(pick.rack)
    return tuple(each.broker for each in chosen)
