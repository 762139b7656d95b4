"""The stores of a running application, read from their changelogs by anybody, anywhere.

Every question first reads what was committed since the last one, so an answer is as new as the last
finished micro-batch. The first question reads the changelog from its beginning. One thread at a
time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from ottla.streams.engine.progress import UNKNOWN, Cell
from ottla.streams.engine.records import InputRecord
from ottla.streams.engine.session_store import SessionStore
from ottla.streams.engine.stores import MemoryStore
from ottla.streams.engine.window_store import LAST_TIME_MS, WindowStore
from ottla.streams.failures import TopologyError
from ottla.streams.spark.topic_follower import TopicFollower
from ottla.streams.store_spec import StoreKind, StoreSpec
from ottla.streams.topology import Topology
from ottla.streams.windowed import Windowed

_WINDOW_TAIL: Final = struct.Struct(">Q4x")
_SESSION_TAIL: Final = struct.Struct(">QQ")


def _for_ever(spec: StoreSpec) -> StoreSpec:
    """Tasks say themselves what they forget, each by its own time."""
    return replace(spec, retention_ms=LAST_TIME_MS)


class TableView:
    """A value by key."""

    __slots__ = ("_decode", "_decode_key", "_encode_key", "_entries", "_follower")

    def __init__(self, spec: StoreSpec, follower: TopicFollower) -> None:
        self._follower = follower
        self._entries = MemoryStore()
        self._encode_key, self._decode_key = spec.key.serializer(), spec.key.deserializer()
        self._decode = spec.value.deserializer()

    def get(self, key: Any) -> Any:
        """The value, or None."""
        self._catch_up()
        data = self._entries.get(self._encode_key(key))
        return None if data is None else self._decode(data)

    def all(self) -> Iterator[tuple[Any, Any]]:
        """Keys and values, in the order of the keys' bytes."""
        return self._between(b"", None)

    def range(self, start: Any, end: Any) -> Iterator[tuple[Any, Any]]:
        """Those with start <= key < end, in the order of the keys' bytes."""
        return self._between(self._encode_key(start), self._encode_key(end))

    def _between(self, start: bytes, end: bytes | None) -> Iterator[tuple[Any, Any]]:
        self._catch_up()
        for key, data in self._entries.range(start, end):
            yield self._decode_key(key), self._decode(data)

    def _catch_up(self) -> None:
        for record in self._follower.news():
            if record.key is None:
                continue
            if record.value is None:
                self._entries.delete(record.key)
            else:
                self._entries.put(record.key, record.value)


class WindowView:
    """A value by key and window."""

    __slots__ = ("_decode", "_decode_key", "_follower", "_store")

    def __init__(self, spec: StoreSpec, follower: TopicFollower) -> None:
        self._follower = follower
        self._store = WindowStore(_for_ever(spec), MemoryStore(), Cell(UNKNOWN))
        self._decode_key, self._decode = spec.key.deserializer(), spec.value.deserializer()

    def get(self, key: Any, start_ms: int) -> Any:
        """The value of the window that begins then, or None."""
        self._catch_up()
        found = self._store.get(key, start_ms)
        return None if found is None else found[0]

    def fetch(
        self, key: Any, start_ms: int = 0, end_ms: int = LAST_TIME_MS
    ) -> list[tuple[Windowed, Any]]:
        """The windows of a key that begin in [start, end), the earliest first."""
        self._catch_up()
        size_ms = self._store.spec.size_ms or 0
        return [
            (Windowed(key, start, start + size_ms), value)
            for start, value, _ in self._store.fetch(key, start_ms, end_ms)
        ]

    def all(self, start_ms: int = 0, end_ms: int = LAST_TIME_MS) -> Iterator[tuple[Windowed, Any]]:
        """The windows of all keys that begin in [start, end), by start and then by key."""
        self._catch_up()
        return ((one, value) for one, value, _ in self._store.fetch_all(start_ms, end_ms))

    def _catch_up(self) -> None:
        for record in self._follower.news():
            self._take(record)

    def _take(self, record: InputRecord) -> None:
        assert record.key is not None
        tail = _WINDOW_TAIL.size
        (start_ms,) = _WINDOW_TAIL.unpack(record.key[-tail:])
        value = None if record.value is None else self._decode(record.value)
        key = self._decode_key(record.key[:-tail])
        self._store.put(key, start_ms, value, record.timestamp_ms)


class SessionView:
    """A value by key and session."""

    __slots__ = ("_decode", "_decode_key", "_follower", "_store")

    def __init__(self, spec: StoreSpec, follower: TopicFollower) -> None:
        self._follower = follower
        self._store = SessionStore(_for_ever(spec), MemoryStore(), Cell(UNKNOWN))
        self._decode_key, self._decode = spec.key.deserializer(), spec.value.deserializer()

    def fetch(self, key: Any) -> list[tuple[Windowed, Any]]:
        """The sessions of a key, the earliest first."""
        self._catch_up()
        return self._store.find(key)

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        """The sessions of all keys, by end, start and key."""
        self._catch_up()
        return self._store.ending_in(0, LAST_TIME_MS)

    def _catch_up(self) -> None:
        for record in self._follower.news():
            self._take(record)

    def _take(self, record: InputRecord) -> None:
        assert record.key is not None
        tail = _SESSION_TAIL.size
        end_ms, start_ms = _SESSION_TAIL.unpack(record.key[-tail:])
        value = None if record.value is None else self._decode(record.value)
        self._store.put(Windowed(self._decode_key(record.key[:-tail]), start_ms, end_ms), value)


StoreView = TableView | WindowView | SessionView
_VIEWS: Final = {
    StoreKind.TABLE: TableView,
    StoreKind.KEY_VALUE: TableView,
    StoreKind.WINDOW: WindowView,
    StoreKind.SESSION: SessionView,
}


def view_of(topology: Topology, name: str, app_id: str, kafka: Mapping[str, str]) -> Any:
    """A view of the store of that name; TopologyError says why there is none."""
    known = {spec.name: spec for spec in topology.stores if spec.kind in _VIEWS}
    if name not in known:
        names = ", ".join(known) or "none"
        raise TopologyError(f"there is no store {name!r} to read; there are {names}")
    spec = known[name]
    if spec.is_global:
        topic = next(one.topic for one in topology.global_tables if one.store == name)
    elif spec.logged:
        topic = topology.changelog_topic(name, app_id)
    else:
        raise TopologyError(f"the store {name!r} has no changelog (logged=False) to read it from")
    return _VIEWS[spec.kind](spec, TopicFollower(topic, kafka))
