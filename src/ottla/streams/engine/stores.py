"""Where a task keeps its state: bytes by bytes, in order. What they mean stands elsewhere.

1. A task writes into an overlay, and reads through it. Nothing reaches the store below before the
   batch ends, and then only what changed.
2. Ranges are [start, end) in the order of the key's bytes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Final, Protocol

_CHUNK_KEYS_MAX: Final = 1024


class Store(Protocol):
    """What is asked of a store."""

    def get(self, key: bytes) -> bytes | None: ...
    def put(self, key: bytes, value: bytes) -> None: ...
    def delete(self, key: bytes) -> None: ...
    def range(self, start: bytes, end: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Entries with start <= key < end, in order; without an end, to the last."""


def after_prefix(prefix: bytes) -> bytes | None:
    """The first key behind all that begin with `prefix`; None if there is none."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes((stripped[-1] + 1,)) if stripped else None


class SortedKeys:
    """Keys in order, cut into chunks so that adding one does not move them all."""

    __slots__ = ("_chunks",)

    def __init__(self) -> None:
        self._chunks: list[list[bytes]] = []

    def add(self, key: bytes) -> None:
        """Adds a key that is not there."""
        if not self._chunks:
            self._chunks.append([key])
            return
        number = self._chunk_of(key)
        chunk = self._chunks[number]
        insort(chunk, key)
        if len(chunk) > _CHUNK_KEYS_MAX:
            half = len(chunk) // 2
            self._chunks[number : number + 1] = [chunk[:half], chunk[half:]]

    def remove(self, key: bytes) -> None:
        """Removes a key that is there."""
        number = self._chunk_of(key)
        chunk = self._chunks[number]
        del chunk[bisect_left(chunk, key)]
        if not chunk:
            del self._chunks[number]

    def between(self, start: bytes, end: bytes | None) -> list[bytes]:
        """The keys in [start, end), as they are now."""
        found: list[bytes] = []
        if not self._chunks:
            return found
        for chunk in self._chunks[self._chunk_of(start) :]:
            if end is not None and chunk[0] >= end:
                break
            first = bisect_left(chunk, start)
            last = len(chunk) if end is None else bisect_left(chunk, end)
            found += chunk[first:last]
        return found

    def _chunk_of(self, key: bytes) -> int:
        """The last chunk that begins at or before the key, or the first."""
        low, high = 0, len(self._chunks)
        while high - low > 1:
            middle = (low + high) // 2
            if self._chunks[middle][0] <= key:
                low = middle
            else:
                high = middle
        return low


class MemoryStore:
    """A store in memory. Keys are put in order only once somebody asks for a range."""

    __slots__ = ("_entries", "_keys")

    def __init__(self) -> None:
        self._entries: dict[bytes, bytes] = {}
        self._keys: SortedKeys | None = None

    def get(self, key: bytes) -> bytes | None:
        return self._entries.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        if self._keys is not None and key not in self._entries:
            self._keys.add(key)
        self._entries[key] = value

    def delete(self, key: bytes) -> None:
        if self._entries.pop(key, None) is not None and self._keys is not None:
            self._keys.remove(key)

    def range(self, start: bytes, end: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        if self._keys is None:
            self._keys = SortedKeys()
            for key in sorted(self._entries):
                self._keys.add(key)
        entries = self._entries
        return ((key, entries[key]) for key in self._keys.between(start, end) if key in entries)

    def __len__(self) -> int:
        return len(self._entries)


class OverlayStore:
    """What a batch changed, over the store it changed it in."""

    __slots__ = ("_below", "_keys", "changes")

    def __init__(self, below: Store) -> None:
        self._below = below
        self._keys: SortedKeys | None = None
        self.changes: dict[bytes, bytes | None] = {}
        """New values by key; None: deleted."""

    def get(self, key: bytes) -> bytes | None:
        try:
            return self.changes[key]
        except KeyError:
            return self._below.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        if self._keys is not None and key not in self.changes:
            self._keys.add(key)
        self.changes[key] = value

    def delete(self, key: bytes) -> None:
        if self._keys is not None and key not in self.changes:
            self._keys.add(key)
        self.changes[key] = None

    def range(self, start: bytes, end: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """The store's entries with the changes; changes made meanwhile may or may not show."""
        changed = self._changed_keys().between(start, end)
        below = self._below.range(start, end)
        return _merged(below, changed, self.changes) if changed else below

    def flush(self) -> None:
        """Writes the changes down and forgets them."""
        for key, value in self.changes.items():
            if value is None:
                self._below.delete(key)
            else:
                self._below.put(key, value)
        self.changes = {}
        self._keys = None

    def _changed_keys(self) -> SortedKeys:
        if self._keys is None:
            self._keys = SortedKeys()
            for key in sorted(self.changes):
                self._keys.add(key)
        return self._keys


def _merged(
    below: Iterator[tuple[bytes, bytes]],
    changed: list[bytes],
    changes: dict[bytes, bytes | None],
) -> Iterator[tuple[bytes, bytes]]:
    place = 0
    for key, value in below:
        while place < len(changed) and changed[place] < key:
            if (new := changes[changed[place]]) is not None:
                yield changed[place], new
            place += 1
        if place < len(changed) and changed[place] == key:
            continue  # the changed one follows in the next round
        yield key, value
    for key in changed[place:]:
        if (new := changes[key]) is not None:
            yield key, new
