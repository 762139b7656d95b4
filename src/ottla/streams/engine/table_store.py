"""Typed faces of stores with one value a key: of tables, with its timestamp; of users, without."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

from ottla.streams.engine.stores import Store
from ottla.streams.store_spec import StoreSpec

_TIME: Final = struct.Struct(">q")


class TableStore:
    """A value and the time it is from, by key."""

    __slots__ = ("_decode", "_decode_key", "_encode", "_encode_key", "_store", "spec")

    def __init__(self, spec: StoreSpec, store: Store) -> None:
        self.spec = spec
        self._store = store
        self._encode_key, self._decode_key = spec.key.serializer(), spec.key.deserializer()
        self._encode, self._decode = spec.value.serializer(), spec.value.deserializer()

    def get(self, key: Any) -> tuple[Any, int] | None:
        """The value and its timestamp."""
        data = self._store.get(self._encode_key(key))
        if data is None:
            return None
        return self._decode(data[8:]), _TIME.unpack_from(data)[0]

    def put(self, key: Any, value: Any, timestamp_ms: int) -> None:
        """Sets the value; None deletes it."""
        if value is None:
            self._store.delete(self._encode_key(key))
        else:
            self._store.put(self._encode_key(key), _TIME.pack(timestamp_ms) + self._encode(value))

    def all(self) -> Iterator[tuple[Any, Any, int]]:
        """Keys, values and timestamps, in the order of the keys' bytes."""
        for key, data in self._store.range(b"", None):
            yield self._decode_key(key), self._decode(data[8:]), _TIME.unpack_from(data)[0]


class KeyValueStore:
    """A value by key, for processors of the user's own."""

    __slots__ = ("_decode", "_decode_key", "_encode", "_encode_key", "_store", "spec")

    def __init__(self, spec: StoreSpec, store: Store) -> None:
        self.spec = spec
        self._store = store
        self._encode_key, self._decode_key = spec.key.serializer(), spec.key.deserializer()
        self._encode, self._decode = spec.value.serializer(), spec.value.deserializer()

    def get(self, key: Any) -> Any:
        """The value, or None."""
        data = self._store.get(self._encode_key(key))
        return None if data is None else self._decode(data)

    def put(self, key: Any, value: Any) -> None:
        """Sets the value; None deletes it."""
        if value is None:
            self.delete(key)
        else:
            self._store.put(self._encode_key(key), self._encode(value))

    def delete(self, key: Any) -> None:
        self._store.delete(self._encode_key(key))

    def range(self, start: Any, end: Any) -> Iterator[tuple[Any, Any]]:
        """Entries with start <= key < end, in the order of the keys' bytes."""
        low, high = self._encode_key(start), self._encode_key(end)
        for key, data in list(self._store.range(low, high)):
            yield self._decode_key(key), self._decode(data)

    def all(self) -> Iterator[tuple[Any, Any]]:
        """All entries, in the order of the keys' bytes."""
        for key, data in list(self._store.range(b"", None)):
            yield self._decode_key(key), self._decode(data)
