"""The indexes of sealed segments, loaded when first asked for and forgotten by age of use.

The bound is on memory, since an index's size follows its segment's. An active segment's indexes
are not kept here: they are still growing.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from ottla.storage.offset_index import OffsetIndex
from ottla.storage.time_index import TimeIndex

INDEX_MEMORY_BYTES_MAX: Final = 16 * 1024 * 1024


class SegmentIndexes:
    """Both indexes every segment has."""

    __slots__ = ("offsets", "times")

    def __init__(self, offsets: OffsetIndex, times: TimeIndex) -> None:
        self.offsets = offsets
        self.times = times

    @property
    def memory_bytes(self) -> int:
        return self.offsets.memory_bytes + self.times.memory_bytes


class IndexCache:
    """Sealed segments' indexes by the path of their data file."""

    def __init__(self, *, memory_bytes_max: int = INDEX_MEMORY_BYTES_MAX) -> None:
        self._memory_bytes_max = memory_bytes_max
        self._loaded: OrderedDict[str, SegmentIndexes] = OrderedDict()
        self.memory_bytes = 0

    def get(self, path: str) -> SegmentIndexes | None:
        indexes = self._loaded.get(path)
        if indexes is not None:
            self._loaded.move_to_end(path)
        return indexes

    def put(self, path: str, indexes: SegmentIndexes) -> None:
        """Keep `indexes`; at least the newest stay, however large."""
        self.forget(path)
        self._loaded[path] = indexes
        self.memory_bytes += indexes.memory_bytes
        while self.memory_bytes > self._memory_bytes_max and len(self._loaded) > 1:
            _, oldest = self._loaded.popitem(last=False)
            self.memory_bytes -= oldest.memory_bytes

    def forget(self, path: str) -> None:
        indexes = self._loaded.pop(path, None)
        if indexes is not None:
            self.memory_bytes -= indexes.memory_bytes
