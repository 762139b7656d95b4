"""Ranges of offsets to read, and how they are cut into tasks. Pure: knows no cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from ottla.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets [start, end) of one partition."""

    where: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many offsets, which is at least the number of records."""
        return max(0, self.end - self.start)


def ranges_between(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
) -> list[OffsetRange]:
    """What lies between two places, without what is empty; `start` has every partition."""
    ranges = (OffsetRange(where, start[where], end[where]) for where in sorted(end))
    return [each for each in ranges if each.size > 0]


def cut(
    ranges: Iterable[OffsetRange], *, tasks_min: int | None, records_max: int | None
) -> list[OffsetRange]:
    """The ranges in so many pieces: none larger than `records_max`, and about `tasks_min`.

    Pieces are shared out by size, and every range has at least one.
    """
    found = [each for each in ranges if each.size > 0]
    if records_max is not None:
        found = [piece for each in found for piece in _pieces(each, -(-each.size // records_max))]
    if tasks_min is None or len(found) >= tasks_min:
        return found
    total = sum(each.size for each in found)
    return [
        piece
        for each in found
        for piece in _pieces(each, max(1, round(tasks_min * each.size / total)))
    ]


def _pieces(whole: OffsetRange, count: int) -> list[OffsetRange]:
    """The range in `count` pieces of nearly the same size."""
    count = min(count, whole.size)
    bounds = [whole.start + whole.size * index // count for index in range(count + 1)]
    return [OffsetRange(whole.where, first, after) for first, after in pairwise(bounds)]
