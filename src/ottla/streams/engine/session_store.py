"""Typed face of a store of sessions: a value by key, first and last time.

"k" length(4) key end(8) start(8)  ->  the value
"t" end(8) start(8) key            ->  nothing; written with it
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

from ottla.streams.engine.progress import Cell
from ottla.streams.engine.stores import Store, after_prefix
from ottla.streams.store_spec import StoreSpec
from ottla.streams.windowed import Windowed

_LENGTH: Final = struct.Struct(">I")
_TIME: Final = struct.Struct(">Q")
_TIMES: Final = struct.Struct(">QQ")


class SessionStore:
    """Sessions by key, within a retention counted from the newest end."""

    __slots__ = ("_decode", "_decode_key", "_encode", "_encode_key", "_newest", "_store", "spec")

    def __init__(self, spec: StoreSpec, store: Store, newest: Cell) -> None:
        self.spec = spec
        self._store = store
        self._newest = newest
        self._encode_key, self._decode_key = spec.key.serializer(), spec.key.deserializer()
        self._encode, self._decode = spec.value.serializer(), spec.value.deserializer()

    @property
    def oldest_ms(self) -> int:
        """The earliest end of a session that is still kept."""
        assert self.spec.retention_ms is not None
        return max(0, self._newest.value - self.spec.retention_ms + 1)

    def put(self, windowed: Windowed, value: Any) -> None:
        """Sets a session's value; None deletes it."""
        key = self._encode_key(windowed.key)
        times = _TIMES.pack(windowed.end_ms, windowed.start_ms)
        entry, index = b"k" + _LENGTH.pack(len(key)) + key + times, b"t" + times + key
        self._newest.value = max(self._newest.value, windowed.end_ms)
        if value is None:
            self._store.delete(entry)
            self._store.delete(index)
            return
        if windowed.end_ms >= self.oldest_ms:
            self._store.put(entry, self._encode(value))
            self._store.put(index, b"")

    def get(self, windowed: Windowed) -> Any:
        """The value of exactly this session."""
        if windowed.end_ms < self.oldest_ms:
            return None
        key = self._encode_key(windowed.key)
        times = _TIMES.pack(windowed.end_ms, windowed.start_ms)
        data = self._store.get(b"k" + _LENGTH.pack(len(key)) + key + times)
        return None if data is None else self._decode(data)

    def find(
        self, key: Any, end_least_ms: int = 0, start_most_ms: int = (1 << 63) - 1
    ) -> list[tuple[Windowed, Any]]:
        """Sessions of a key that end at or after one time and begin at or before another."""
        encoded = self._encode_key(key)
        prefix = b"k" + _LENGTH.pack(len(encoded)) + encoded
        low = prefix + _TIME.pack(max(end_least_ms, self.oldest_ms))
        found = []
        for name, data in self._store.range(low, after_prefix(prefix)):
            end_ms, start_ms = _TIMES.unpack(name[-16:])
            if start_ms <= start_most_ms:
                found.append((Windowed(key, start_ms, end_ms), self._decode(data)))
        return found

    def ending_in(self, start_ms: int, end_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """Sessions of all keys whose end lies in [start, end), by end, start and key."""
        start_ms = max(start_ms, self.oldest_ms)
        if start_ms >= end_ms:
            return
        names = list(self._store.range(b"t" + _TIME.pack(start_ms), b"t" + _TIME.pack(end_ms)))
        for name, _ in names:
            last_ms, first_ms = _TIMES.unpack_from(name, 1)
            windowed = Windowed(self._decode_key(name[17:]), first_ms, last_ms)
            value = self.get(windowed)
            if value is not None:
                yield windowed, value

    def expire(self) -> None:
        """Removes what is too old."""
        for name, _ in list(self._store.range(b"t", b"t" + _TIME.pack(self.oldest_ms))):
            key, times = name[17:], name[1:17]
            self._store.delete(b"k" + _LENGTH.pack(len(key)) + key + times)
            self._store.delete(name)
