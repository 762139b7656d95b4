"""Accounts on several partitions, transfers between them, and what must be true of any reading.

A transfer is two records, one for each account, in one transaction. Invariants of every complete
reading, whatever crashes: no transfer is half there or there twice, no aborted transfer is there,
no committed one is missing, and so the money is always the same.
"""

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

from support.eventually import eventually
from support.requests import Place
from transactions.committed_reads import CommittedReader

PARTITIONS = 3
ACCOUNTS = 9
OPENING_BALANCE = 1_000
ABORTED_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Leg:
    """One record of a transfer: an account and what it gains."""

    transfer: str
    account: int
    gain: int

    @property
    def partition(self) -> int:
        return self.account % PARTITIONS

    def encode(self) -> bytes:
        return f"{self.transfer} {self.account} {self.gain}".encode()

    @classmethod
    def decode(cls, value: bytes) -> "Leg":
        transfer, account, gain = value.decode().split()
        return cls(transfer, int(account), int(gain))


def opening_legs() -> list[Leg]:
    """What puts money into the bank: a transfer of its own for each account."""
    return [Leg(f"opening-{one}", one, OPENING_BALANCE) for one in range(ACCOUNTS)]


def random_transfer(name: str, random: Random) -> tuple[Leg, Leg]:
    giver, taker = random.sample(range(ACCOUNTS), 2)
    amount = random.randint(1, 50)
    return Leg(name, giver, -amount), Leg(name, taker, amount)


class Journal:
    """What a writer knows of its transfers, in a file that outlives it."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY)

    def note(self, word: str, transfer: str) -> None:
        os.write(self._file, f"{word} {transfer}\n".encode())

    @staticmethod
    def read(folder: Path) -> dict[str, set[str]]:
        """The transfers of all journals by what was noted of them last."""
        last: dict[str, str] = {}
        for path in folder.glob("*.journal"):
            for line in path.read_text().splitlines():
                word, transfer = line.split()
                last[transfer] = word
        by_word: dict[str, set[str]] = {"begun": set(), "committed": set(), "aborted": set()}
        for transfer, word in last.items():
            by_word[word].add(transfer)
        return by_word

    @staticmethod
    def committed_count(path: Path) -> int:
        text = path.read_text() if path.exists() else ""
        return text.count("committed ")


class Auditor:
    """Reads all accounts as of committed transactions, and holds the reading to the journals."""

    def __init__(self, bootstrap: str, topic: str, journals: Path) -> None:
        self._reader = CommittedReader(bootstrap)
        self.places: list[Place] = [(topic, partition) for partition in range(PARTITIONS)]
        self._journals = journals
        self._legs: list[Leg] = []
        self._offsets: dict[Place, int] = {}

    def audit(self) -> Counter[str]:
        """Check one complete reading; returns how many legs it has of each transfer."""
        legs = self._complete_reading(Journal.read(self._journals)["committed"])
        seen = Counter(leg.transfer for leg in legs)
        aborted_by_now = Journal.read(self._journals)["aborted"]
        assert not aborted_by_now & seen.keys(), "an aborted transfer was read"
        doubled = [name for name, count in seen.items() if count != legs_of(name)]
        assert not doubled, f"transfers that are there more than once: {doubled}"
        assert sum(leg.gain for leg in legs) == ACCOUNTS * OPENING_BALANCE
        return seen

    def wait_unlocked(self) -> None:
        """No transaction stays open: readers come to the end of every partition."""
        self._reader.wait_stable(*self.places)

    def close(self) -> None:
        self._reader.close()

    def _complete_reading(self, committed: set[str]) -> list[Leg]:
        """The legs up to where the partitions end now, with all of those transfers.

        A commit reaches its partitions one after another, and is seen behind what is still open;
        a reader who has one half, or knows of the commit, waits for the rest, which must come.
        """
        self._read_on()
        begun = committed.union(leg.transfer for leg in self._legs)

        def complete() -> list[Leg] | None:
            self._read_on()
            legs = [leg for leg in self._legs if leg.transfer in begun]
            counts = Counter(leg.transfer for leg in legs)
            return legs if all(counts[name] >= legs_of(name) for name in begun) else None

        return eventually(
            complete, "all of every transfer that was read or is known to be committed"
        )

    def _read_on(self) -> None:
        for place in self.places:
            read = self._reader.read(place, start=self._offsets.get(place, 0))
            self._legs += map(Leg.decode, read.values)
            self._offsets[place] = read.last_stable_offset


def legs_of(transfer: str) -> int:
    return 1 if transfer.startswith("opening-") else 2
