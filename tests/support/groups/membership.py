"""What every member does whatever its library: write down, commit what was read, give up in order.

The rule that makes exactly-once checkable: records are written down before their positions are
committed, and positions are committed before a partition is given up.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from support.groups.journal import (
    ASSIGNED,
    COMMITTED,
    LOST,
    RECORDS,
    REFUSED,
    REVOKED,
    Event,
)
from support.journal import JournalWriter, now_ns


class MemberOptions(msgspec.Struct, frozen=True):
    """How one member is to behave; given to its process as JSON."""

    library: str
    name: str
    bootstrap: str
    group: str
    topic: str
    journal: str
    session_timeout_ms: int = 3000
    heartbeat_interval_ms: int = 300
    strategy: str = "range"
    protocol: str = "classic"
    instance_id: str | None = None


class Membership:
    """The journal and the books of one member."""

    def __init__(self, options: MemberOptions) -> None:
        self.journal = JournalWriter(Path(options.journal))
        self.owned: set[int] = set()
        self.uncommitted: dict[int, int] = {}
        self._unwritten: dict[int, list[int]] = {}

    def note(self, kind: str, text: str = "") -> None:
        self.journal.write(Event(kind, now_ns(), text=text))

    def assigned(self, partitions: Iterable[int], generation: int) -> None:
        added = sorted(partitions)
        self.owned.update(added)
        self.journal.write(Event(ASSIGNED, now_ns(), generation, added))

    def given_up(self, partitions: Iterable[int], generation: int, *, is_lost: bool) -> None:
        self.write_records()
        removed = sorted(partitions)
        for partition in removed:
            self.uncommitted.pop(partition, None)
        self.owned.difference_update(removed)
        kind = LOST if is_lost else REVOKED
        self.journal.write(Event(kind, now_ns(), generation, removed))

    def read(self, partition: int, offset: int) -> None:
        """A record was handed to the application."""
        self._unwritten.setdefault(partition, []).append(offset)
        self.uncommitted[partition] = offset + 1

    def write_records(self) -> None:
        if self._unwritten:
            self.journal.write(Event(RECORDS, now_ns(), offsets=self._unwritten))
            self._unwritten = {}

    def committed(self, positions: Mapping[int, int], generation: int, since_ns: int) -> None:
        for partition, position in positions.items():
            if self.uncommitted.get(partition) == position:
                del self.uncommitted[partition]
        event = Event(COMMITTED, now_ns(), generation, positions=dict(positions), since_ns=since_ns)
        self.journal.write(event)

    def refused(self, positions: Mapping[int, int], generation: int, why: str) -> None:
        """A commit was answered with an error: its records may come again."""
        event = Event(REFUSED, now_ns(), generation, positions=dict(positions), text=why)
        self.journal.write(event)
