"""What must be true of the journals of a group, however hard the storm.

1. One owner: nobody owns a partition while another does, unless the older owner was killed, paused
   or told that it lost it; and even then not in the same generation.
2. One assignment: in one generation a partition is given to one member only.
3. Fencing: no commit that was begun after a later generation gave the partition to another member
   was accepted.
4. Nothing goes back: a new owner starts at or after every position committed before it became one.
5. At least once: every record acknowledged to the producer was read.
6. Exactly once where commits allow it: a record was read twice only where an earlier reader of it
   could not commit, because it was killed or paused or its commit was refused.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

from support.groups.fleet import Fleet, Member
from support.groups.journal import ASSIGNED, COMMITTED, LOST, RECORDS, REFUSED, REVOKED

FOREVER = 1 << 62


@dataclass(slots=True)
class Ownership:
    """One member's possession of one partition, from being told until giving it up."""

    member: Member
    partition: int
    generation: int
    start_ns: int
    end_ns: int = FOREVER
    is_lost: bool = False
    offsets: list[int] = field(default_factory=list)

    def may_be_stale_at(self, moment_ns: int) -> bool:
        """Whether its owner had an excuse for not knowing that it had lost the partition."""
        return self.is_lost or any(at_ns < moment_ns for at_ns in self.member.disturbed_ns)

    def __str__(self) -> str:
        end = "now" if self.end_ns == FOREVER else f"{self.end_ns / 1e9:.3f}"
        return (
            f"{self.member.name} owned {self.partition} from {self.start_ns / 1e9:.3f}"
            f" to {end} in generation {self.generation}"
        )


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that was accepted, of one partition."""

    member: Member
    partition: int
    position: int
    generation: int
    since_ns: int
    at_ns: int

    def is_overtaken_by(self, owner: Ownership) -> bool:
        """Whether somebody else had the partition in a later generation when this was begun."""
        return (
            owner.member.identity != self.member.identity
            and 0 <= self.generation < owner.generation
            and owner.start_ns < self.since_ns
        )


class Chronicle:
    """All journals of a fleet, put in order."""

    def __init__(self, fleet: Fleet) -> None:
        self.ownerships: dict[int, list[Ownership]] = defaultdict(list)
        self.commits: dict[int, list[Commit]] = defaultdict(list)
        self.refusing: set[str] = set()
        self.strays: list[str] = []
        for member in fleet.members:
            self._add(member)
        for found in self.ownerships.values():
            found.sort(key=lambda one: one.start_ns)

    def _add(self, member: Member) -> None:
        current: dict[int, Ownership] = {}
        for event in member.journal.read_on():
            if event.kind == ASSIGNED:
                for partition in event.partitions:
                    one = Ownership(member, partition, event.generation, event.at_ns)
                    current[partition] = one
                    self.ownerships[partition].append(one)
            elif event.kind in (REVOKED, LOST):
                for partition in event.partitions:
                    if ended := current.pop(partition, None):
                        ended.end_ns, ended.is_lost = event.at_ns, event.kind == LOST
            elif event.kind == RECORDS:
                for partition, offsets in event.offsets.items():
                    if partition in current:
                        current[partition].offsets += offsets
                    else:
                        self.strays.append(f"{member.name} read {partition} without owning it")
            elif event.kind == REFUSED:
                self.refusing.add(member.name)
            elif event.kind == COMMITTED:
                for partition, position in event.positions.items():
                    self.commits[partition].append(
                        Commit(
                            member,
                            partition,
                            position,
                            event.generation,
                            event.since_ns,
                            event.at_ns,
                        )
                    )
        for left in current.values():
            left.end_ns = member.killed_ns or FOREVER

    def read_offsets(self) -> dict[int, Counter[int]]:
        """How often each offset of each partition was read."""
        return {
            partition: Counter(offset for one in found for offset in one.offsets)
            for partition, found in self.ownerships.items()
        }

    def problems(self) -> list[str]:
        """All broken rules but at-least-once, which needs to know what was produced."""
        return [
            *self.strays,
            *self._shared_ownerships(),
            *self._double_assignments(),
            *self._accepted_from_the_past(),
            *self._went_back(),
            *self._needless_repeats(),
        ]

    def _shared_ownerships(self) -> Iterator[str]:
        for found in self.ownerships.values():
            for older, newer in combinations(found, 2):
                if older.member.identity == newer.member.identity:
                    continue
                if newer.start_ns >= older.end_ns:
                    continue
                if not older.may_be_stale_at(newer.start_ns):
                    yield f"two owners: {older}, and {newer}"

    def _double_assignments(self) -> Iterator[str]:
        for found in self.ownerships.values():
            for older, newer in combinations(found, 2):
                is_same = older.generation == newer.generation and older.generation >= 0
                if is_same and older.member.identity != newer.member.identity:
                    yield f"assigned twice in one generation: {older}, and {newer}"

    def _accepted_from_the_past(self) -> Iterator[str]:
        for partition, commits in self.commits.items():
            for commit in commits:
                for owner in self.ownerships[partition]:
                    if commit.is_overtaken_by(owner):
                        yield (
                            f"{commit.member.name} committed {commit.position} in generation"
                            f" {commit.generation} although {owner}"
                        )

    def _went_back(self) -> Iterator[str]:
        for partition, found in self.ownerships.items():
            for owner in found:
                before = [
                    commit.position
                    for commit in self.commits[partition]
                    if commit.at_ns < owner.start_ns
                ]
                if before and owner.offsets and min(owner.offsets) < max(before):
                    yield f"{owner} began at {min(owner.offsets)}, committed was {max(before)}"

    def _needless_repeats(self) -> Iterator[str]:
        for partition, found in self.ownerships.items():
            readers: dict[int, Ownership] = {}
            for owner in found:
                for offset in owner.offsets:
                    earlier = readers.get(offset)
                    if earlier is not None and not self._is_excused(earlier):
                        yield f"{offset} of {partition} was read twice, first when {earlier}"
                    readers[offset] = owner

    def _is_excused(self, reader: Ownership) -> bool:
        member = reader.member
        return reader.is_lost or bool(member.disturbed_ns) or member.name in self.refusing


def missing(fleet: Fleet, produced: dict[int, set[int]]) -> dict[int, set[int]]:
    """The records nobody has read yet, by partition."""
    left = {partition: set(offsets) for partition, offsets in produced.items()}
    for member in fleet.members:
        for event in member.of_kind(RECORDS):
            for partition, offsets in event.offsets.items():
                left[partition].difference_update(offsets)
    return {partition: offsets for partition, offsets in left.items() if offsets}
