"""The latest offset of each key, within a bound on memory. What compaction decides by."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

DIGEST_BYTES: Final = 16
"""Longer keys are remembered by digest; two keys of one digest do not happen."""


class OffsetMap:
    """Keys to offsets. When full it takes no new keys, but still learns of known ones."""

    __slots__ = ("_entries_max", "_offsets")

    def __init__(self, entries_max: int) -> None:
        self._offsets: dict[bytes, int] = {}
        self._entries_max = entries_max

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: int) -> bool:
        """Note that `key` occurs at `offset`, later than before; False where there is no room."""
        short = key if len(key) < DIGEST_BYTES else _digest(key)
        offsets = self._offsets
        if len(offsets) >= self._entries_max and short not in offsets:
            return False
        offsets[short] = offset
        return True

    def latest(self, key: bytes) -> int:
        """The last offset of `key`, or -1 where it is not in the map."""
        short = key if len(key) < DIGEST_BYTES else _digest(key)
        return self._offsets.get(short, -1)


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=DIGEST_BYTES).digest()
