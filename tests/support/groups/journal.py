"""What a group member writes down while it lives: one JSON line an event, in a file of its own.

Lines are written with one system call each, so a member that is killed loses none of them. Times
are the machine's monotonic clock and can be compared between processes.
"""

import os
import time
from pathlib import Path

import msgspec

ASSIGNED, REVOKED, LOST = "assigned", "revoked", "lost"
RECORDS, COMMITTED, REFUSED = "records", "committed", "refused"
STARTED, ENDED, FAILED = "started", "ended", "failed"


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that happened to a member; the fields in use depend on its kind."""

    kind: str
    at_ns: int
    generation: int = -1
    partitions: list[int] = []
    offsets: dict[int, list[int]] = {}
    """Of RECORDS: the offsets read of each partition."""
    positions: dict[int, int] = {}
    """Of COMMITTED and REFUSED: the position of each partition."""
    since_ns: int = 0
    """Of COMMITTED and REFUSED: when the commit was begun."""
    text: str = ""


class JournalWriter:
    """The member's side of its journal."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, event: Event) -> None:
        os.write(self._file, msgspec.json.encode(event) + b"\n")


class JournalReader:
    """The test's side: reads on where it stopped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self.events: list[Event] = []

    def read_on(self) -> list[Event]:
        """All events up to now."""
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._position)
                whole, _, _ = file.read().rpartition(b"\n")
            if whole:
                self._position += len(whole) + 1
                self.events += [
                    msgspec.json.decode(line, type=Event) for line in whole.split(b"\n")
                ]
        return self.events


def now_ns() -> int:
    """The clock all members of a machine share."""
    return time.monotonic_ns()
