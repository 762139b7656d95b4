"""What a reset would do to each partition of a group, decided before anything is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.clients.group_offsets import CommittedOffset, Ranges
from ottla.model.ids import Offset, TopicPartition

Committed = Mapping[TopicPartition, CommittedOffset]


@dataclass(frozen=True, slots=True)
class PlannedOffset:
    """Where a group goes on in one partition, before and after."""

    partition: TopicPartition
    before: Offset | None
    after: CommittedOffset
    end: Offset
    note: str = ""

    @property
    def change(self) -> int | None:
        """By how many offsets it moves; None where it had none."""
        return None if self.before is None else self.after.offset - self.before

    @property
    def lag(self) -> int:
        """How far the group will be behind."""
        return self.end - self.after.offset


def plan_shift(by: int, committed: Committed, ranges: Ranges) -> list[PlannedOffset]:
    """Every partition of `ranges` with an offset goes so far on, or back."""
    wanted = {
        partition: CommittedOffset(Offset(at.offset + by))
        for partition, at in committed.items()
        if partition in ranges
    }
    return plan_exactly(wanted, committed, ranges)


def plan_exactly(wanted: Committed, committed: Committed, ranges: Ranges) -> list[PlannedOffset]:
    """Each partition goes to its own offset, or to the nearest there is; all are in `ranges`."""
    return [
        _planned(partition, wanted[partition], committed.get(partition), ranges[partition])
        for partition in sorted(wanted)
    ]


def _planned(
    partition: TopicPartition,
    wanted: CommittedOffset,
    before: CommittedOffset | None,
    range_: tuple[Offset, Offset],
) -> PlannedOffset:
    start, end = range_
    after, note = wanted, ""
    if wanted.offset < start:
        after, note = CommittedOffset(start), f"{wanted.offset} is before the first offset"
    elif wanted.offset > end:
        after, note = CommittedOffset(end), f"{wanted.offset} is after the end"
    return PlannedOffset(partition, None if before is None else before.offset, after, end, note)
