"""The sparse map from timestamps to offsets of one segment.

An entry says: up to and including this offset, no batch has a later timestamp than this. Twelve
bytes on disk: int64 milliseconds, int32 offset from the segment's base. Both only grow.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from typing import Final

from ottla.model.ids import Offset
from ottla.storage.disk import Disk, read_file

_ENTRY: Final = struct.Struct(">qi")
ENTRY_BYTES: Final = _ENTRY.size


class TimeIndex:
    """Entries of one segment in memory; those not yet in the file are known by number."""

    __slots__ = ("_base_offset", "_relative_offsets", "_timestamps", "_written")

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self._timestamps = array("q")
        self._relative_offsets = array("i")
        self._written = 0

    def __len__(self) -> int:
        return len(self._timestamps)

    @property
    def memory_bytes(self) -> int:
        return len(self._timestamps) * ENTRY_BYTES

    @property
    def last(self) -> tuple[int, Offset] | None:
        """The latest timestamp and the offset it stands at."""
        if not self._timestamps:
            return None
        return self._timestamps[-1], Offset(self._base_offset + self._relative_offsets[-1])

    def append(self, timestamp: int, offset: int) -> None:
        """Note a new latest timestamp; one that is not later than the last is ignored."""
        relative = offset - self._base_offset
        if self._timestamps:
            if timestamp <= self._timestamps[-1] or relative <= self._relative_offsets[-1]:
                return
        elif timestamp < 0:
            return
        self._timestamps.append(timestamp)
        self._relative_offsets.append(relative)

    def offset_before(self, timestamp: int) -> Offset:
        """Where to begin looking for the first record at or after `timestamp`."""
        index = bisect_right(self._timestamps, timestamp - 1) - 1
        return Offset(self._base_offset + (self._relative_offsets[index] if index >= 0 else 0))

    def truncate_to(self, offset: int) -> None:
        """Forget entries at or past `offset`."""
        keep = len(self._timestamps)
        while keep and self._relative_offsets[keep - 1] >= offset - self._base_offset:
            keep -= 1
        del self._timestamps[keep:]
        del self._relative_offsets[keep:]
        self._written = min(self._written, keep)

    def write(self, disk: Disk, path: str) -> None:
        """Bring the file up to date; cheap when it is already."""
        new = zip(
            self._timestamps[self._written :], self._relative_offsets[self._written :], strict=True
        )
        data = b"".join(_ENTRY.pack(timestamp, relative) for timestamp, relative in new)
        file = disk.open(path, create=True)
        try:
            file.truncate(self._written * ENTRY_BYTES)
            file.write_at(self._written * ENTRY_BYTES, data)
        finally:
            file.close()
        self._written = len(self._timestamps)

    @classmethod
    def load(cls, disk: Disk, path: str, base_offset: int) -> TimeIndex | None:
        """The file's entries, or None where the file is missing or cannot be right."""
        data = read_file(disk, path)
        if data is None or len(data) % ENTRY_BYTES:
            return None
        index = cls(base_offset)
        for timestamp, relative in _ENTRY.iter_unpack(data):
            index._timestamps.append(timestamp)
            index._relative_offsets.append(relative)
        index._written = len(index._timestamps)
        return index if index._is_sane() else None

    def _is_sane(self) -> bool:
        timestamps, offsets = self._timestamps, self._relative_offsets
        if not timestamps:
            return True
        return (
            offsets[0] >= 0
            and all(map(int.__lt__, timestamps, timestamps[1:]))
            and all(map(int.__lt__, offsets, offsets[1:]))
        )


def last_entry(disk: Disk, path: str, base_offset: int) -> tuple[int, Offset] | None:
    """The last entry of a time index file, without loading the file."""
    file = disk.open(path)
    try:
        entry = file.read_at(max(file.size() - ENTRY_BYTES, 0), ENTRY_BYTES)
    finally:
        file.close()
    if len(entry) < ENTRY_BYTES:
        return None
    timestamp, relative = _ENTRY.unpack(entry)
    return timestamp, Offset(base_offset + relative)
