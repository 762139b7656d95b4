"""What a process writes down while it lives: one JSON line an event, in a file of its own.

Lines are written with one system call each, so a process that is killed loses none of them. Times
are the machine's monotonic clock and can be compared between processes.
"""

import os
import time
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

Entry = TypeVar("Entry", bound=msgspec.Struct)


class JournalWriter:
    """The process's side of its journal."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, event: msgspec.Struct) -> None:
        os.write(self._file, msgspec.json.encode(event) + b"\n")


class JournalReader(Generic[Entry]):
    """The test's side: reads on where it stopped."""

    def __init__(self, path: Path, kind: type[Entry]) -> None:
        self._path = path
        self._decoder = msgspec.json.Decoder(kind)
        self._position = 0
        self.events: list[Entry] = []

    def read_on(self) -> list[Entry]:
        """All events up to now."""
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._position)
                whole, _, _ = file.read().rpartition(b"\n")
            if whole:
                self._position += len(whole) + 1
                self.events += [self._decoder.decode(line) for line in whole.split(b"\n")]
        return self.events


def now_ns() -> int:
    """The clock all processes of a machine share."""
    return time.monotonic_ns()
