"""The positions of the batches appended last, so that reading near the end needs no scan."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

TAIL_BATCHES_MAX: Final = 512
OFFSET_MAX: Final = 2**63 - 1


class SegmentTail:
    """Knows every batch from `start_offset` to the segment's end, and none before."""

    __slots__ = ("_ends", "_positions", "start_offset")

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self._ends: list[int] = []
        self._positions: list[int] = []

    def add(self, end_offset: int, position: int) -> None:
        """A batch that begins at `position` and ends before `end_offset` has been appended."""
        ends = self._ends
        ends.append(end_offset)
        self._positions.append(position)
        if len(ends) > TAIL_BATCHES_MAX:
            drop = TAIL_BATCHES_MAX // 2
            self.start_offset = ends[drop - 1]
            del ends[:drop]
            del self._positions[:drop]

    def locate(self, offset: int, segment_bytes: int) -> tuple[int, int]:
        """Where the first batch that ends after `offset` begins, and its size: 0 for none."""
        positions = self._positions
        index = bisect_right(self._ends, offset)
        if index >= len(positions):
            return segment_bytes, 0
        after = positions[index + 1] if index + 1 < len(positions) else segment_bytes
        return positions[index], after - positions[index]
