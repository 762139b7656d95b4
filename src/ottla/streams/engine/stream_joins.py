"""Joins of a stream: with a stream within a window, with a table, with a global table.

A record that must not be lost when it finds no partner waits in the pending store until its window
has closed on both sides. Keys there are time(8), side(1; 1 is left), key: the oldest come first.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from ottla.streams.engine.functions import joiner, of_key_and_value
from ottla.streams.engine.records import Headers
from ottla.streams.engine.stores import Store
from ottla.streams.engine.table_store import TableStore
from ottla.streams.engine.window_store import JoinStore, packed, unpacked
from ottla.streams.engine.wiring import DropReason, Forward, Wiring
from ottla.streams.operators import (
    RememberForJoin,
    StreamGlobalJoin,
    StreamJoin,
    StreamTableJoin,
)
from ottla.streams.serdes import Serde

_TIME_AND_SIDE: Final = struct.Struct(">QB")
_NO_PENDING_MS: Final = (1 << 63) - 1


def remember_for_join(operator: RememberForJoin, wiring: Wiring) -> Forward:
    """What has no key cannot be found again and is only handed on."""
    store: JoinStore = wiring.stores.typed(operator.store)
    forward = wiring.forward

    def remembered(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        forward(key, value, timestamp_ms, headers)
        if key is not None and value is not None:
            store.add(key, timestamp_ms, value)

    return remembered


class PendingJoins:
    """Records of both sides that have found no partner yet."""

    __slots__ = ("_decode_key", "_encode_key", "_oldest", "_sides", "_store")

    def __init__(self, store: Store, wiring: Wiring, name: str, sides: dict[bool, Serde]) -> None:
        self._store = store
        spec = wiring.stores.specs[name]
        self._encode_key, self._decode_key = spec.key.serializer(), spec.key.deserializer()
        self._sides = {
            is_left: (serde.serializer(), serde.deserializer()) for is_left, serde in sides.items()
        }
        self._oldest = wiring.shared_cell(f"oldest {name}")

    @property
    def oldest_ms(self) -> int:
        """No record waits that is older than this."""
        return _NO_PENDING_MS if self._oldest.value < 0 else self._oldest.value

    def add(self, key: Any, value: Any, timestamp_ms: int, *, is_left: bool) -> None:
        name = self._name(key, timestamp_ms, is_left)
        entry = (self._store.get(name) or b"") + packed(self._sides[is_left][0](value))
        self._store.put(name, entry)
        self._oldest.value = min(self.oldest_ms, timestamp_ms)

    def remove(self, key: Any, timestamp_ms: int, *, is_left: bool) -> None:
        """A partner came."""
        name = self._name(key, timestamp_ms, is_left)
        if self._store.get(name) is not None:
            self._store.delete(name)

    def take(self, is_closed: Callable[[int, bool], bool]) -> list[tuple[Any, Any, int, bool]]:
        """Removes and returns what no partner can reach any more: key, value, time, is left.

        As in Kafka Streams the next look waits for the last record looked at, which can be a
        little newer than the oldest that is left: a result may come late, but not too early.
        """
        taken: list[tuple[Any, Any, int, bool]] = []
        looked_at_ms = _NO_PENDING_MS
        open_sides: set[bool] = set()
        for name, entry in self._store.range(b"", None):
            looked_at_ms, side = _TIME_AND_SIDE.unpack_from(name)
            is_left = bool(side)
            if len(open_sides) == 2:
                break
            if not is_closed(looked_at_ms, is_left):
                open_sides.add(is_left)
                continue
            key, decode = self._decode_key(name[9:]), self._sides[is_left][1]
            taken += [(key, decode(value), looked_at_ms, is_left) for value in unpacked(entry)]
            self._store.delete(name)
        self._oldest.value = looked_at_ms
        return taken

    def _name(self, key: Any, timestamp_ms: int, is_left: bool) -> bytes:
        return _TIME_AND_SIDE.pack(timestamp_ms, is_left) + self._encode_key(key)


class StreamJoinSide:
    """One side of a stream-stream join: looks for partners among the other side's records."""

    __slots__ = (
        "_after_ms",
        "_before_ms",
        "_join",
        "_operator",
        "_other",
        "_pending",
        "_stream_time",
        "_wiring",
    )

    def __init__(self, operator: StreamJoin, wiring: Wiring) -> None:
        self._operator = operator
        self._wiring = wiring
        self._other: JoinStore = wiring.stores.typed(operator.other_store)
        self._join = joiner(operator.joiner, operator.with_key)
        windows = operator.windows
        both = (windows.before_ms, windows.after_ms)
        self._before_ms, self._after_ms = both if operator.is_left else both[::-1]
        self._stream_time = wiring.shared_cell(f"observed {operator.name}")
        self._pending = self._pending_joins()

    def _pending_joins(self) -> PendingJoins | None:
        operator, stores = self._operator, self._wiring.stores
        if operator.pending is None:
            return None
        left, right = self._wiring.node.stores[:2]
        sides = {True: stores.specs[left].value, False: stores.specs[right].value}
        return PendingJoins(stores.raw(operator.pending), self._wiring, operator.pending, sides)

    def process(self, key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        observed = self._stream_time
        observed.value = max(observed.value, timestamp_ms)
        outer, forward = self._operator.outer, self._wiring.forward
        if outer and key is None and value is not None:
            forward(key, self._joined(key, value, None), timestamp_ms, headers)
            return
        if key is None or value is None:
            self._wiring.drop(DropReason.NULL_KEY if key is None else DropReason.NULL_VALUE)
            return
        if self._pending is not None and timestamp_ms == observed.value:
            self._emit_unjoined(self._pending, headers)
        start_ms = max(0, timestamp_ms - self._before_ms)
        last_ms = max(0, timestamp_ms + self._after_ms)
        partners = self._other.fetch(key, start_ms, last_ms + 1)
        for other_ms, other in partners:
            if self._pending is not None:
                self._pending.remove(key, other_ms, is_left=not self._operator.is_left)
            joined = self._joined(key, value, other)
            forward(key, joined, max(timestamp_ms, other_ms), headers)
        if outer and not partners:
            if self._pending is None or last_ms < observed.value:
                forward(key, self._joined(key, value, None), timestamp_ms, headers)
            else:
                self._pending.add(key, value, timestamp_ms, is_left=self._operator.is_left)

    def _joined(self, key: Any, this: Any, other: Any) -> Any:
        left, right = (this, other) if self._operator.is_left else (other, this)
        return self._join(key, left, right)

    def _emit_unjoined(self, pending: PendingJoins, headers: Headers) -> None:
        """Sends what waited and can find nobody any more."""
        windows, now_ms = self._operator.windows, self._stream_time.value
        if pending.oldest_ms + self._after_ms + windows.grace_ms >= now_ms:
            return

        def is_closed(timestamp_ms: int, is_left: bool) -> bool:
            reach_ms = windows.after_ms if is_left else windows.before_ms
            return timestamp_ms + reach_ms + windows.grace_ms < now_ms

        for key, value, timestamp_ms, is_left in pending.take(is_closed):
            left, right = (value, None) if is_left else (None, value)
            self._wiring.forward(key, self._join(key, left, right), timestamp_ms, headers)


def stream_table_join(operator: StreamTableJoin, wiring: Wiring) -> Forward:
    lookup, forward = wiring.lookup(operator.table), wiring.forward
    join, left = joiner(operator.joiner, operator.with_key), operator.left

    def joined(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if value is None or (key is None and not left):
            wiring.drop(DropReason.NULL_KEY if key is None else DropReason.NULL_VALUE)
            return
        found = None if key is None else lookup(key)
        if left or found is not None:
            other = None if found is None else found[0]
            forward(key, join(key, value, other), timestamp_ms, headers)

    return joined


def stream_global_join(operator: StreamGlobalJoin, wiring: Wiring) -> Forward:
    store: TableStore = wiring.stores.typed(operator.store)
    select, forward = of_key_and_value(operator.selector), wiring.forward
    join, left = joiner(operator.joiner, operator.with_key), operator.left

    def joined(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if value is None:
            wiring.drop(DropReason.NULL_VALUE)
            return
        other_key = select(key, value)
        if other_key is None and not left:
            wiring.drop(DropReason.NULL_KEY)
            return
        found = None if other_key is None else store.get(other_key)
        if left or found is not None:
            other = None if found is None else found[0]
            forward(key, join(key, value, other), timestamp_ms, headers)

    return joined
