"""Typed faces of stores of windows: results by key and start, and records kept for a join.

Entries are found by key and time, and forgotten by time:

    "k" length(4) key time(8)  ->  the value
    "t" time(8) key            ->  nothing; written once, when the entry is new

Invariant: what is older than the newest time minus the retention is not there, whether it was
removed yet or not. Removal waits for the end of a batch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

from ottla.streams.engine.progress import Cell
from ottla.streams.engine.stores import Store
from ottla.streams.store_spec import StoreSpec
from ottla.streams.windowed import Windowed

_LENGTH: Final = struct.Struct(">I")
_TIME: Final = struct.Struct(">Q")
_SIGNED: Final = struct.Struct(">q")
_BY_KEY: Final = b"k"
_BY_TIME: Final = b"t"
LAST_TIME_MS: Final = (1 << 63) - 1


class TimedEntries:
    """Bytes by key and time, within a retention."""

    __slots__ = ("_newest", "_retention_ms", "_store")

    def __init__(self, store: Store, retention_ms: int, newest: Cell) -> None:
        self._store = store
        self._retention_ms = retention_ms
        self._newest = newest

    @property
    def oldest_ms(self) -> int:
        """The earliest time that is still kept."""
        return max(0, self._newest.value - self._retention_ms + 1)

    def get(self, key: bytes, time_ms: int) -> bytes | None:
        if time_ms < self.oldest_ms:
            return None
        return self._store.get(_entry_key(key, time_ms))

    def put(self, key: bytes, time_ms: int, value: bytes, *, is_new: bool) -> bool:
        """Sets an entry; False if it would be too old to keep."""
        if time_ms > self._newest.value:
            self._newest.value = time_ms
        if time_ms < self.oldest_ms:
            return False
        self._store.put(_entry_key(key, time_ms), value)
        if is_new:
            self._store.put(_BY_TIME + _TIME.pack(time_ms) + key, b"")
        return True

    def delete(self, key: bytes, time_ms: int) -> None:
        self._newest.value = max(self._newest.value, time_ms)
        self._store.delete(_entry_key(key, time_ms))
        self._store.delete(_BY_TIME + _TIME.pack(time_ms) + key)

    def of_key(self, key: bytes, start_ms: int, end_ms: int) -> list[tuple[int, bytes]]:
        """Times in [start, end) with their values, the earliest first."""
        start_ms = max(start_ms, self.oldest_ms)
        if start_ms >= end_ms:
            return []
        prefix = _BY_KEY + _LENGTH.pack(len(key)) + key
        found = self._store.range(prefix + _TIME.pack(start_ms), prefix + _TIME.pack(end_ms))
        return [(_TIME.unpack(name[-8:])[0], value) for name, value in found]

    def by_time(self, start_ms: int, end_ms: int) -> Iterator[tuple[int, bytes, bytes]]:
        """Times in [start, end), keys and values, by time and then by key."""
        start_ms = max(start_ms, self.oldest_ms)
        if start_ms >= end_ms:
            return
        low, high = _BY_TIME + _TIME.pack(start_ms), _BY_TIME + _TIME.pack(end_ms)
        for name, _ in list(self._store.range(low, high)):
            time_ms, key = _TIME.unpack_from(name, 1)[0], name[9:]
            value = self._store.get(_entry_key(key, time_ms))
            if value is not None:
                yield time_ms, key, value

    def expire(self) -> None:
        """Removes what is too old."""
        high = _BY_TIME + _TIME.pack(self.oldest_ms)
        for name, _ in list(self._store.range(_BY_TIME, high)):
            self.delete(name[9:], _TIME.unpack_from(name, 1)[0])


def _entry_key(key: bytes, time_ms: int) -> bytes:
    return _BY_KEY + _LENGTH.pack(len(key)) + key + _TIME.pack(time_ms)


class WindowStore:
    """A value and its timestamp by key and window start."""

    __slots__ = ("_decode", "_decode_key", "_encode", "_encode_key", "_entries", "spec")

    def __init__(self, spec: StoreSpec, store: Store, newest: Cell) -> None:
        self.spec = spec
        assert spec.retention_ms is not None
        self._entries = TimedEntries(store, spec.retention_ms, newest)
        self._encode_key, self._decode_key = spec.key.serializer(), spec.key.deserializer()
        self._encode, self._decode = spec.value.serializer(), spec.value.deserializer()

    def get(self, key: Any, start_ms: int) -> tuple[Any, int] | None:
        """The value of one window, and its timestamp."""
        data = self._entries.get(self._encode_key(key), start_ms)
        return None if data is None else (self._decode(data[8:]), _SIGNED.unpack_from(data)[0])

    def put(self, key: Any, start_ms: int, value: Any, timestamp_ms: int | None = None) -> None:
        """Sets the value of one window; None deletes it."""
        encoded = self._encode_key(key)
        if value is None:
            self._entries.delete(encoded, start_ms)
            return
        is_new = self._entries.get(encoded, start_ms) is None
        stamp = _SIGNED.pack(start_ms if timestamp_ms is None else timestamp_ms)
        self._entries.put(encoded, start_ms, stamp + self._encode(value), is_new=is_new)

    def fetch(
        self, key: Any, start_ms: int = 0, end_ms: int = LAST_TIME_MS
    ) -> list[tuple[int, Any, int]]:
        """Windows of a key that begin in [start, end): starts, values, timestamps."""
        found = self._entries.of_key(self._encode_key(key), start_ms, end_ms)
        return [
            (start, self._decode(data[8:]), _SIGNED.unpack_from(data)[0]) for start, data in found
        ]

    def fetch_all(
        self, start_ms: int = 0, end_ms: int = LAST_TIME_MS
    ) -> Iterator[tuple[Windowed, Any, int]]:
        """Windows of all keys that begin in [start, end), by start and then by key."""
        size_ms = self.spec.size_ms or 0
        for start, key, data in self._entries.by_time(start_ms, end_ms):
            windowed = Windowed(self._decode_key(key), start, start + size_ms)
            yield windowed, self._decode(data[8:]), _SIGNED.unpack_from(data)[0]

    def expire(self) -> None:
        self._entries.expire()


class JoinStore:
    """All values by key and time, in the order they came: what a join looks for partners in."""

    __slots__ = ("_decode", "_encode", "_encode_key", "_entries")

    def __init__(self, spec: StoreSpec, store: Store, newest: Cell) -> None:
        assert spec.retention_ms is not None
        self._entries = TimedEntries(store, spec.retention_ms, newest)
        self._encode_key = spec.key.serializer()
        self._encode, self._decode = spec.value.serializer(), spec.value.deserializer()

    def add(self, key: Any, time_ms: int, value: Any) -> None:
        encoded = self._encode_key(key)
        before = self._entries.get(encoded, time_ms)
        entry = (before or b"") + packed(self._encode(value))
        self._entries.put(encoded, time_ms, entry, is_new=before is None)

    def fetch(self, key: Any, start_ms: int, end_ms: int) -> list[tuple[int, Any]]:
        """Times in [start, end) with their values, the earliest first."""
        found = self._entries.of_key(self._encode_key(key), start_ms, end_ms)
        decode = self._decode
        return [(time_ms, decode(one)) for time_ms, entry in found for one in unpacked(entry)]

    def expire(self) -> None:
        self._entries.expire()


def packed(value: bytes) -> bytes:
    """A value with its length in front, so that several can follow each other."""
    return _LENGTH.pack(len(value)) + value


def unpacked(entry: bytes) -> Iterator[bytes]:
    """The values that were packed one after the other."""
    position = 0
    while position < len(entry):
        (length,) = _LENGTH.unpack_from(entry, position)
        position += 4
        yield entry[position : position + length]
        position += length
