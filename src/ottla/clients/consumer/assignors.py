"""Who of a classic group reads what: the four assignors of Kafka's clients, as pure functions.

Each takes the members with their subscriptions and the number of partitions of each topic, and
gives every partition of every subscribed topic to exactly one member that wants it. Only
`cooperative_sticky` leaves one out for a round: a partition that its old owner must give up first.
Only `range_` looks at racks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.clients.consumer.topic_shares import TopicShares, share_side_by_side
from ottla.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Member:
    """A member as its leader sees it."""

    id: str
    topics: frozenset[str]
    instance_id: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    """In which `owned` was so."""
    rack: str | None = None
    """Where it runs, if it says so."""

    @property
    def rank(self) -> tuple[int, str]:
        """Static members come first, by their lasting names: restarts change no order."""
        return (0, self.instance_id) if self.instance_id else (1, self.id)


Assignment = dict[str, list[TopicPartition]]
Racks = Mapping[TopicPartition, frozenset[str]]
"""Where the replicas of partitions are, as far as their brokers say."""
NO_RACKS: Final[Racks] = {}
Assign = Callable[[Sequence[Member], Mapping[str, int], Racks], Assignment]


def range_(
    members: Sequence[Member], counts: Mapping[str, int], racks: Racks = NO_RACKS
) -> Assignment:
    """Of every topic a run of neighbours to each; near ones first, where racks make a difference.

    Topics of the same size with the same readers stay side by side: whoever reads a partition of
    one reads its like of the others (KIP-881).
    """
    assignment: Assignment = {member.id: [] for member in members}
    topics = sorted({topic for member in members for topic in member.topics})
    shares = [_shares(topic, members, counts.get(topic, 0), racks) for topic in topics]
    alike: dict[tuple[frozenset[str], int], list[TopicShares]] = {}
    for share in shares:
        if share.has_choice:
            alike.setdefault(share.likeness, []).append(share)
    for group in alike.values():
        if len(group) > 1:
            share_side_by_side(group)
    for share in shares:
        if share.has_choice:
            share.deal(nearby_only=True)
        share.deal(nearby_only=False)
        for member, partitions in share.given.items():
            assignment[member] += [TopicPartition(share.topic, p) for p in sorted(partitions)]
    return assignment


def round_robin(
    members: Sequence[Member], counts: Mapping[str, int], _racks: Racks = NO_RACKS
) -> Assignment:
    """All partitions of all topics, dealt out like cards."""
    assignment: Assignment = {member.id: [] for member in members}
    circle = sorted(members, key=lambda member: member.rank)
    turn = 0
    for partition in _partitions(members, counts):
        while partition.topic not in circle[turn % len(circle)].topics:
            turn += 1
        assignment[circle[turn % len(circle)].id].append(partition)
        turn += 1
    return assignment


def sticky(
    members: Sequence[Member], counts: Mapping[str, int], _racks: Racks = NO_RACKS
) -> Assignment:
    """As even as can be, and of those the one with the fewest moves that is easily found."""
    wanted = _partitions(members, counts)
    assignment = _kept(members, set(wanted))
    _trim(members, assignment, len(wanted))
    taken = {partition for kept in assignment.values() for partition in kept}
    for partition in wanted:
        if partition not in taken:
            readers = [member for member in members if partition.topic in member.topics]
            least = min(readers, key=lambda m: (len(assignment[m.id]), m.rank))
            assignment[least.id].append(partition)
    _balance(members, assignment)
    return {member: sorted(partitions) for member, partitions in assignment.items()}


def cooperative_sticky(
    members: Sequence[Member], counts: Mapping[str, int], _racks: Racks = NO_RACKS
) -> Assignment:
    """The sticky one in two steps: what somebody still has is given away in the next round."""
    assignment = sticky(members, counts)
    valid = _kept(members, set(_partitions(members, counts)))
    owner = {partition: member for member, kept in valid.items() for partition in kept}
    return {
        member: [each for each in partitions if owner.get(each, member) == member]
        for member, partitions in assignment.items()
    }


ASSIGNORS: Final[Mapping[str, Assign]] = {
    "range": range_,
    "roundrobin": round_robin,
    "sticky": sticky,
    "cooperative-sticky": cooperative_sticky,
}
COOPERATIVE: Final = frozenset({"cooperative-sticky"})


def _shares(topic: str, members: Sequence[Member], count: int, racks: Racks) -> TopicShares:
    readers = sorted((m for m in members if topic in m.topics), key=lambda m: m.rank)
    places = [racks.get(TopicPartition(topic, p), frozenset()) for p in range(count)]
    return TopicShares(topic, {reader.id: reader.rack for reader in readers}, places)


def _partitions(members: Sequence[Member], counts: Mapping[str, int]) -> list[TopicPartition]:
    topics = sorted({topic for member in members for topic in member.topics})
    return [TopicPartition(topic, p) for topic in topics for p in range(counts.get(topic, 0))]


def _kept(members: Sequence[Member], there: set[TopicPartition]) -> Assignment:
    """What members had and may keep; of two who claim the same, the one of the later generation."""
    claims: dict[TopicPartition, Member] = {}
    disputed: set[TopicPartition] = set()
    for member in sorted(members, key=lambda m: m.rank):
        for partition in member.owned:
            if partition not in there or partition.topic not in member.topics:
                continue
            other = claims.get(partition)
            if other is not None and other.generation == member.generation:
                disputed.add(partition)
            if other is None or member.generation > other.generation:
                disputed.discard(partition)
                claims[partition] = member
    kept: Assignment = {member.id: [] for member in members}
    for partition, member in sorted(claims.items(), key=lambda claim: claim[0]):
        if partition not in disputed:
            kept[member.id].append(partition)
    return kept


def _trim(members: Sequence[Member], assignment: Assignment, total: int) -> None:
    """Takes from members with the same subscription what is above an even share."""
    if len({member.topics for member in members}) != 1:
        return
    share, rest = divmod(total, len(members))
    by_load = sorted(members, key=lambda m: (-len(assignment[m.id]), m.rank))
    for index, member in enumerate(by_load):
        del assignment[member.id][share + (index < rest) :]


def _balance(members: Sequence[Member], assignment: Assignment) -> None:
    """Moves partitions from the busiest to the idlest as long as that makes it more even."""
    has_moved = True
    while has_moved:
        has_moved = False
        idle_first = sorted(members, key=lambda m: (len(assignment[m.id]), m.rank))
        for idle in idle_first:
            for busy in reversed(idle_first):
                if len(assignment[busy.id]) - len(assignment[idle.id]) < 2:
                    break
                movable = [each for each in assignment[busy.id] if each.topic in idle.topics]
                if movable:
                    assignment[busy.id].remove(movable[-1])
                    assignment[idle.id].append(movable[-1])
                    has_moved = True
                    break
            if has_moved:
                break
