"""The universal checker: what must be true of every record, whatever was done to the cluster.

1. Nothing acknowledged is lost: it stands at its offset in the log.
2. A place in the log has one value, in every read there ever was.
3. A producer's records stand in the order it sent them, each once.
4. What was acknowledged before a record was sent has a smaller offset.
5. Nothing stands in the log that was never sent.
6. A group's committed position is not behind one whose commit was acknowledged.
7. All replicas are equal, byte for byte.
9. Epochs of leaders never go back along a log.
10. Thirty seconds after everything was healed at the latest, records are acknowledged again.

(The numbers are those of the invariants I1 to I10; members of groups have a judge of their own, and
the metadata's invariants are sampled elsewhere.) Knows journals and logs; asks nobody.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ottla.records.batch import split
from support.faults.events import Reading, Sent, parse_value

PROGRESS_SECONDS_MAX = 30.0
EXAMPLES_MAX = 5
"""So many of a kind are shown: a thousand lost records need not all be named."""


@dataclass(frozen=True, slots=True)
class Written:
    """All that one producer knows."""

    name: str
    acknowledged: Sequence[Sent]
    failed: Sequence[Sent] = ()
    sent: Mapping[int, int] = field(default_factory=dict)
    """How many numbers were used in each partition."""
    is_durable: bool = True
    """Whether what was acknowledged must stay: not with acks=1."""
    is_once: bool = True
    """Whether each record stands there once and in order: not without idempotence."""


@dataclass(frozen=True, slots=True)
class History:
    """All that is known once everything is over."""

    written: Sequence[Written]
    logs: Mapping[int, Sequence[tuple[int, str]]]
    """Every record of each partition, in order: offset and value."""
    read: Sequence[Reading] = ()
    replicas: Mapping[int, Mapping[int, bytes]] = field(default_factory=dict)
    """The bytes of each partition's log, by broker."""
    committed: Mapping[int, int] = field(default_factory=dict)
    """What the readers' group has committed in each partition, at last."""
    healed_ns: int = 0
    may_lose: bool = False
    """Somebody who was not in sync was allowed to lead: what was acknowledged may be replaced."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came out, in numbers and in words."""

    acknowledged: int
    lost: int
    duplicated: int
    failed: int
    longest_outage_seconds: float
    problems: tuple[str, ...]


def judge(history: History) -> Verdict:
    """Looks at everything."""
    lost = list(_lost(history))
    duplicated = list(_duplicated(history))
    replaced = [
        *some("lost", lost),
        *some("two values at one place", _ambiguous(history)),
        *some("acknowledged at an older place", _overtaken(history)),
        *some("a commit went back", _went_back(history)),
    ]
    problems = [
        *(() if history.may_lose else replaced),
        *some("duplicated", duplicated),
        *some("out of order", _disordered(history)),
        *some("never sent", _invented(history)),
        *some("replicas differ", unequal_copies(history.replicas)),
        *some("an epoch went back", _epochs_back(history)),
        *some("no progress", _stuck(history)),
    ]
    return Verdict(
        acknowledged=sum(len(each.acknowledged) for each in history.written),
        lost=len(lost),
        duplicated=len(duplicated),
        failed=sum(len(each.failed) for each in history.written),
        longest_outage_seconds=longest_outage_seconds(history.written),
        problems=tuple(problems),
    )


def longest_outage_seconds(written: Iterable[Written]) -> float:
    """The longest time in which no record of some partition was acknowledged to anybody."""
    ends: dict[int, list[int]] = defaultdict(list)
    for each in written:
        for sent in each.acknowledged:
            ends[sent.partition].append(sent.ended_ns)
    gaps = [
        later - earlier for found in ends.values() for earlier, later in pairwise(sorted(found))
    ]
    return max(gaps, default=0) / 1e9


def some(what: str, found: Iterable[str]) -> list[str]:
    """A problem for each of them, or for the first few and the number of the rest."""
    listed = list(found)
    shown = [f"{what}: {each}" for each in listed[:EXAMPLES_MAX]]
    rest = len(listed) - len(shown)
    return [*shown, f"{what}: and {rest} more"] if rest else shown


def _durable(history: History) -> Iterator[Written]:
    return (each for each in history.written if each.is_durable)


def _lost(history: History) -> Iterator[str]:
    """I1. Where a client does not know the offset, the record must stand somewhere."""
    at_offset = {partition: dict(log) for partition, log in history.logs.items()}
    values = {partition: {value for _, value in log} for partition, log in history.logs.items()}
    for each in _durable(history):
        for sent in each.acknowledged:
            value = f"{each.name} {sent.number}"
            place = f"{value!r} of partition {sent.partition} at {sent.offset}"
            if value not in values.get(sent.partition, ()):
                yield place
            elif sent.offset >= 0 and at_offset[sent.partition].get(sent.offset) != value:
                yield f"{place}, where {at_offset[sent.partition].get(sent.offset)!r} stands"


def _ambiguous(history: History) -> Iterator[str]:
    """I2."""
    known = {
        (partition, offset): value
        for partition, log in history.logs.items()
        for offset, value in log
    }
    for reading in history.read:
        for partition, records in reading.records.items():
            for offset, value in records:
                settled = known.setdefault((partition, offset), value)
                if settled != value:
                    yield f"{partition}:{offset} was read as {value!r} and is {settled!r}"


def _numbers(history: History) -> Iterator[tuple[int, str, list[int]]]:
    for partition, log in history.logs.items():
        found: dict[str, list[int]] = defaultdict(list)
        for _, value in log:
            producer, number = parse_value(value)
            found[producer].append(number)
        for producer, numbers in found.items():
            yield partition, producer, numbers


def _ordered(history: History) -> Iterator[tuple[int, str, list[int]]]:
    """The numbers of producers that promise to write each once and in order."""
    careless = {each.name for each in history.written if not each.is_once}
    return (found for found in _numbers(history) if found[1] not in careless)


def _duplicated(history: History) -> Iterator[str]:
    """The second half of I3."""
    for partition, producer, numbers in _ordered(history):
        seen: set[int] = set()
        for number in numbers:
            if number in seen:
                yield f"'{producer} {number}' of partition {partition}"
            seen.add(number)


def _disordered(history: History) -> Iterator[str]:
    """The first half of I3."""
    for partition, producer, numbers in _ordered(history):
        for left, right in pairwise(numbers):
            if left > right:
                yield f"'{producer} {right}' after '{producer} {left}' in partition {partition}"


def _overtaken(history: History) -> Iterator[str]:
    """I4, by going through sends and acknowledgements in the order of time."""
    moments: dict[int, list[tuple[int, int, Sent, str]]] = defaultdict(list)
    for each in _durable(history):
        for sent in each.acknowledged:
            if sent.offset >= 0:
                moments[sent.partition].append((sent.sent_ns, 0, sent, each.name))
                moments[sent.partition].append((sent.ended_ns, 1, sent, each.name))
    for partition, found in moments.items():
        highest = -1
        floors: dict[int, int] = {}
        for _, is_end, sent, name in sorted(found, key=lambda moment: moment[:2]):
            if not is_end:
                floors[id(sent)] = highest
                continue
            if sent.offset <= floors[id(sent)]:
                yield (
                    f"'{name} {sent.number}' of partition {partition} at {sent.offset},"
                    f" sent after {floors[id(sent)]} was acknowledged"
                )
            highest = max(highest, sent.offset)


def _invented(history: History) -> Iterator[str]:
    """I5, of records outside transactions."""
    used = {each.name: each.sent for each in history.written}
    for partition, producer, numbers in _numbers(history):
        if producer not in used:
            yield f"somebody called {producer!r} wrote to partition {partition}"
            continue
        if not used[producer]:
            continue  # It did not end in order, and its last number is not known.
        for number in numbers:
            if not 0 <= number < used[producer].get(partition, 0):
                yield f"'{producer} {number}' of partition {partition}"


def _went_back(history: History) -> Iterator[str]:
    """I6. A commit that failed may have been carried out late: its position is no problem."""
    highest: dict[int, int] = {}
    uncertain: dict[int, set[int]] = defaultdict(set)
    for reading in history.read:
        for partition, position in reading.committed.items():
            highest[partition] = max(position, highest.get(partition, -1))
        for partition, position in reading.uncertain.items():
            uncertain[partition].add(position)
    for partition, position in highest.items():
        found = history.committed.get(partition, -1)
        if found < position and found not in uncertain[partition]:
            yield f"partition {partition} was committed at {position} and is at {found}"


def unequal_copies(replicas: Mapping[int, Mapping[int, bytes]]) -> Iterator[str]:
    """I7."""
    for partition, copies in replicas.items():
        (first, expected), *others = sorted(copies.items())
        for broker, found in others:
            if found != expected:
                yield (
                    f"partition {partition} has {len(expected)} bytes on broker {first} and"
                    f" {len(found)} on {broker}, equal up to {_common_bytes(expected, found)}"
                )


def _epochs_back(history: History) -> Iterator[str]:
    """What a log can show of I9."""
    for partition, copies in history.replicas.items():
        for broker, data in copies.items():
            batches = split(memoryview(data), ignore_torn_tail=True)
            for left, right in pairwise(batches):
                if left.leader_epoch > right.leader_epoch:
                    yield (
                        f"{left.leader_epoch} is followed by {right.leader_epoch} at offset"
                        f" {right.base_offset} of partition {partition} on broker {broker}"
                    )


def _common_bytes(one: bytes, other: bytes) -> int:
    shorter = min(len(one), len(other))
    return next((at for at in range(shorter) if one[at] != other[at]), shorter)


def _stuck(history: History) -> Iterator[str]:
    """I10."""
    if not history.healed_ns:
        return
    limit_ns = history.healed_ns + int(PROGRESS_SECONDS_MAX * 1e9)
    for partition in history.logs:
        ends = [
            sent.ended_ns
            for each in history.written
            for sent in each.acknowledged
            if sent.partition == partition and sent.ended_ns > history.healed_ns
        ]
        if not ends:
            yield f"nothing was acknowledged in partition {partition} after healing"
        elif min(ends) > limit_ns:
            seconds = (min(ends) - history.healed_ns) / 1e9
            yield f"partition {partition} took {seconds:.1f} s after healing"
