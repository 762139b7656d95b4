"""What must be true of transfers in transactions, whatever was done to the cluster.

1. What was committed is there: both records of every transfer, each once.
2. What was aborted is nowhere, in no read there ever was; a transfer whose end nobody knows is
   there whole or not at all.
3. So the sum of all accounts is always the same.
4. A place in the log has one value, replicas are equal byte for byte, and money moves again within
   thirty seconds after healing.

Knows notes and logs; asks nobody.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from support.faults.events import Note, Reading
from support.faults.judge import PROGRESS_SECONDS_MAX, Verdict, some, unequal_copies
from transactions.bank import Leg

LEGS = 2


@dataclass(frozen=True, slots=True)
class BankHistory:
    """All that is known once everything is over."""

    notes: Sequence[Note]
    values: Mapping[int, Sequence[str]]
    """What a reader of committed records finds in each partition, at last."""
    read: Sequence[Reading] = ()
    replicas: Mapping[int, Mapping[int, bytes]] = field(default_factory=dict)
    healed_ns: int = 0

    def transfers(self, word: str) -> set[str]:
        """Those of which this was noted last."""
        last = {note.transfer: note.word for note in self.notes}
        return {transfer for transfer, found in last.items() if found == word}

    def commits_ns(self) -> list[int]:
        return sorted(note.at_ns for note in self.notes if note.word == "committed")


def judge_bank(history: BankHistory) -> Verdict:
    """Looks at everything."""
    legs = [Leg.decode(value.encode()) for each in history.values.values() for value in each]
    counts = Counter(leg.transfer for leg in legs)
    committed = history.transfers("committed")
    lost = sorted(each for each in committed if counts[each] < LEGS)
    doubled = sorted(each for each, count in counts.items() if count > LEGS)
    torn = sorted(each for each, count in counts.items() if count < LEGS and each not in committed)
    total = sum(leg.gain for leg in legs)
    problems = [
        *some("lost", lost),
        *some("duplicated", doubled),
        *some("half there", torn),
        *some("aborted and read", _aborted(history)),
        *some("never begun", sorted(counts.keys() - {note.transfer for note in history.notes})),
        *some("money was made or lost", [str(total)] if total else []),
        *some("two values at one place", _ambiguous(history)),
        *some("replicas differ", unequal_copies(history.replicas)),
        *some("no progress", _stuck(history)),
    ]
    gaps = [later - earlier for earlier, later in pairwise(history.commits_ns())]
    return Verdict(
        acknowledged=len(committed) * LEGS,
        lost=len(lost),
        duplicated=len(doubled),
        failed=len(history.transfers("aborted")),
        longest_outage_seconds=max(gaps, default=0) / 1e9,
        problems=tuple(problems),
    )


def _aborted(history: BankHistory) -> Iterator[str]:
    aborted = history.transfers("aborted")
    everything = [value for each in history.values.values() for value in each]
    for reading in history.read:
        everything += [value for found in reading.records.values() for _, value in found]
    seen = {Leg.decode(value.encode()).transfer for value in everything}
    return iter(sorted(seen & aborted))


def _ambiguous(history: BankHistory) -> Iterator[str]:
    known: dict[tuple[int, int], str] = {}
    for reading in history.read:
        for partition, records in reading.records.items():
            for offset, value in records:
                settled = known.setdefault((partition, offset), value)
                if settled != value:
                    yield f"{partition}:{offset} was read as {value!r} and as {settled!r}"


def _stuck(history: BankHistory) -> Iterator[str]:
    if not history.healed_ns:
        return
    after = [at_ns for at_ns in history.commits_ns() if at_ns > history.healed_ns]
    if not after:
        yield "nothing was committed after healing"
    elif after[0] > history.healed_ns + PROGRESS_SECONDS_MAX * 1e9:
        yield f"{(after[0] - history.healed_ns) / 1e9:.1f} s after healing"
