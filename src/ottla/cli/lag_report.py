"""How far groups are behind, at one moment and from one moment to the next. Asks nobody."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ottla.clients.group_offsets import PartitionLag
from ottla.clients.groups import GroupDescription


@dataclass(frozen=True, slots=True)
class GroupLag:
    """One group at one moment."""

    group: GroupDescription
    rows: tuple[PartitionLag, ...]
    at_s: float
    """By a clock that only goes forward."""

    @property
    def total(self) -> int:
        """The lag of all partitions where it is known."""
        return sum(row.lag or 0 for row in self.rows)

    def of_topic(self, topic: str) -> GroupLag:
        """The same in one topic only."""
        rows = tuple(row for row in self.rows if row.partition.topic == topic)
        return GroupLag(self.group, rows, self.at_s)

    @property
    def topics(self) -> list[str]:
        """The topics it reads, in order."""
        return sorted({row.partition.topic for row in self.rows})


@dataclass(frozen=True, slots=True)
class Progress:
    """What happened between two looks at a group, in records a second."""

    read_per_s: float
    written_per_s: float

    def seconds_left(self, lag: int) -> float | None:
        """How long until the group has caught up, if it does."""
        gain = self.read_per_s - self.written_per_s
        if lag == 0:
            return 0.0
        return lag / gain if gain > 0 else None


def progress(before: GroupLag, now: GroupLag) -> Progress | None:
    """What happened in the partitions that were known at both looks; None if no time passed."""
    seconds = now.at_s - before.at_s
    if seconds <= 0:
        return None
    earlier = {row.partition: row for row in before.rows}
    pairs = [(earlier[row.partition], row) for row in now.rows if row.partition in earlier]
    read = _sum((old.committed, new.committed) for old, new in pairs)
    written = _sum((old.end, new.end) for old, new in pairs)
    return Progress(read / seconds, written / seconds)


def _sum(pairs: Iterable[tuple[int | None, int | None]]) -> int:
    return sum(new - old for old, new in pairs if old is not None and new is not None)


def lag_json(lag: GroupLag) -> dict[str, object]:
    """One group for programs."""
    owners = lag.group.owners()
    rows = []
    for row in lag.rows:
        owner = owners.get(row.partition)
        rows.append(
            {
                "topic": row.partition.topic,
                "partition": row.partition.partition,
                "committed_offset": row.committed,
                "start_offset": row.start,
                "end_offset": row.end,
                "lag": row.lag,
                "client_id": owner.client_id if owner else None,
                "member_id": owner.id if owner else None,
            }
        )
    return {
        "group": lag.group.id,
        "state": lag.group.state,
        "lag": lag.total,
        "partitions": rows,
    }
