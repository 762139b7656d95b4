"""The sparse map from offsets to positions in one segment's data file.

An entry is the last offset of a batch and the position where that batch begins: eight bytes on
disk (two int32, the offset counted from the segment's base). Missing entries only make a look-up
scan further; an entry must never point anywhere but at the beginning of its batch.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.model.ids import Offset, Position
from ottla.storage.disk import Disk, read_file

ENTRY_BYTES: Final = 8
RELATIVE_OFFSET_MAX: Final = 2**31 - 1
"""How far from its base a segment can reach: entries count in int32."""


class IndexEntry(NamedTuple):
    """A batch: its last offset, and where it begins."""

    last_offset: Offset
    position: Position


class OffsetIndex:
    """Entries of one segment in memory; those not yet in the file are known by number."""

    __slots__ = ("_base_offset", "_positions", "_relative_offsets", "_written")

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self._relative_offsets = array("i")
        self._positions = array("i")
        self._written = 0

    def __len__(self) -> int:
        return len(self._positions)

    @property
    def memory_bytes(self) -> int:
        return len(self._positions) * ENTRY_BYTES

    @property
    def last_position(self) -> Position:
        """Where the last indexed batch begins; the segment's beginning where there is none."""
        return Position(self._positions[-1] if self._positions else 0)

    def append(self, last_offset: int, position: int) -> None:
        self._relative_offsets.append(last_offset - self._base_offset)
        self._positions.append(position)

    def entry_before(self, offset: int) -> IndexEntry | None:
        """Where to begin looking for `offset`: no batch that begins earlier contains it.

        None says: at the segment's beginning.
        """
        index = bisect_right(self._relative_offsets, offset - self._base_offset) - 1
        if index < 0:
            return None
        return self._entry(index)

    def entry_from(self, offset: int) -> IndexEntry | None:
        """The first batch it knows that ends at or past `offset`: the one that holds it, where the
        index knows that one."""
        index = bisect_left(self._relative_offsets, offset - self._base_offset)
        if index == len(self._positions):
            return None
        return self._entry(index)

    def _entry(self, index: int) -> IndexEntry:
        last_offset = Offset(self._base_offset + self._relative_offsets[index])
        return IndexEntry(last_offset, Position(self._positions[index]))

    def entries(self) -> Iterator[IndexEntry]:
        for relative, position in zip(self._relative_offsets, self._positions, strict=True):
            yield IndexEntry(Offset(self._base_offset + relative), Position(position))

    def position_near(self, position: int) -> Position:
        """The beginning of a batch at or before `position`."""
        index = bisect_right(self._positions, position) - 1
        return Position(self._positions[index] if index >= 0 else 0)

    def truncate_to_position(self, position: int) -> None:
        """Forget batches that begin at or past `position`."""
        keep = len(self._positions)
        while keep and self._positions[keep - 1] >= position:
            keep -= 1
        del self._positions[keep:]
        del self._relative_offsets[keep:]
        self._written = min(self._written, keep)

    def write(self, disk: Disk, path: str) -> None:
        """Bring the file up to date; cheap when it is already."""
        count = len(self._positions)
        entries = array("i", bytes(ENTRY_BYTES * (count - self._written)))
        entries[0::2] = self._relative_offsets[self._written :]
        entries[1::2] = self._positions[self._written :]
        _to_big_endian(entries)
        file = disk.open(path, create=True)
        try:
            file.truncate(self._written * ENTRY_BYTES)
            file.write_at(self._written * ENTRY_BYTES, entries.tobytes())
        finally:
            file.close()
        self._written = count

    @classmethod
    def load(cls, disk: Disk, path: str, base_offset: int, *, log_bytes: int) -> OffsetIndex | None:
        """The file's entries, or None where the file is missing or cannot be right."""
        data = read_file(disk, path)
        if data is None or len(data) % ENTRY_BYTES:
            return None
        entries = array("i", data)
        _to_big_endian(entries)
        index = cls(base_offset)
        index._relative_offsets = entries[0::2]
        index._positions = entries[1::2]
        index._written = len(index._positions)
        return index if index._is_sane(log_bytes) else None

    def _is_sane(self, log_bytes: int) -> bool:
        positions, offsets = self._positions, self._relative_offsets
        if not positions:
            return True
        return (
            positions[0] >= 0
            and offsets[0] >= 0
            and positions[-1] < log_bytes
            and all(map(int.__lt__, positions, positions[1:]))
            and all(map(int.__lt__, offsets, offsets[1:]))
        )


def _to_big_endian(entries: array[int]) -> None:
    if sys.byteorder == "little":
        entries.byteswap()
