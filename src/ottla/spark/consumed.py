"""What a micro-batch was made of, kept as a group's offsets in the transaction of its results.

So the group says how far results go, to the record: whoever has lost everything else can go on from
there. And who would write results of records that somebody else has written results of, under the
same name and from another checkpoint, finds out before it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.clients.consumer.group_place import OffsetAndMetadata
from ottla.clients.group_offsets import CommittedOffset
from ottla.errors import ErrorCode, OttlaError
from ottla.model.ids import TopicPartition


class OffsetsMoved(OttlaError):
    """A group is not where the micro-batch begins: results of other records were written."""

    code = ErrorCode.PRODUCER_FENCED

    def __init__(self, group: str, where: TopicPartition, committed: int, start: int) -> None:
        self.group = group
        self.where = where
        super().__init__(
            f"the group {group!r} is at offset {committed} of {where}, this query at {start}: "
            "another one of the same name has run with another checkpoint, or the group was reset; "
            "see that only one runs, and delete this checkpoint to go on where the group is"
        )


@dataclass(frozen=True, slots=True)
class Consumed:
    """Ranges [start, end) of offsets by partition, and the group that is told of them."""

    group: str
    ranges: Mapping[TopicPartition, tuple[int, int]]

    def check(self, committed: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Raises OffsetsMoved unless the group stands where every range begins, or nowhere."""
        for where, (start, _) in self.ranges.items():
            if where in committed and committed[where].offset != start:
                raise OffsetsMoved(self.group, where, committed[where].offset, start)

    def note(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What to commit."""
        return {where: OffsetAndMetadata(end) for where, (_, end) in self.ranges.items()}
