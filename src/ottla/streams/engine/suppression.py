"""Holding updates of a table back, and letting the last of each key go.

    "k" key             ->  the time under which its update waits
    "t" time(8) key     ->  timestamp, prior, old and new value, headers

A key keeps its place in time when a newer update of it comes. How many wait, how many bytes and
since when at the earliest is counted in numbers of the task.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import msgspec

from ottla.streams.engine.changes import Change
from ottla.streams.engine.records import Headers
from ottla.streams.engine.stores import Store
from ottla.streams.engine.window_store import LAST_TIME_MS
from ottla.streams.engine.wiring import Lookup, Wiring
from ottla.streams.failures import BufferOverflow
from ottla.streams.operators import Suppress

_TIME: Final = struct.Struct(">Q")


class _Held(msgspec.Struct, frozen=True, array_like=True):
    """An update that waits. `prior` is what those below still believe."""

    timestamp_ms: int
    prior: bytes | None
    old: bytes | None
    new: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


_encode_held = msgspec.msgpack.Encoder().encode
_decode_held = msgspec.msgpack.Decoder(_Held).decode


class Suppression:
    """The updates of one table that wait."""

    __slots__ = (
        "_bytes",
        "_decode",
        "_decode_key",
        "_encode",
        "_encode_key",
        "_first_due",
        "_observed",
        "_operator",
        "_records",
        "_store",
        "_wiring",
    )

    def __init__(self, operator: Suppress, wiring: Wiring) -> None:
        self._operator = operator
        self._wiring = wiring
        self._store: Store = wiring.stores.raw(operator.store)
        spec = wiring.stores.specs[operator.store]
        self._encode_key, self._decode_key = spec.key.serializer(), spec.key.deserializer()
        self._encode, self._decode = spec.value.serializer(), spec.value.deserializer()
        self._observed = wiring.cell("observed")
        self._records, self._bytes = wiring.cell("records"), wiring.cell("bytes")
        self._first_due = wiring.cell("first due")

    def process(self, key: Any, change: Change, timestamp_ms: int, headers: Headers) -> None:
        self._observed.value = max(self._observed.value, timestamp_ms)
        wait_ms = self._operator.suppressed.wait_ms
        if wait_ms is None:
            due_ms, wait_ms = key.end_ms, self._operator.grace_ms
        else:
            due_ms = timestamp_ms
        self._hold(key, change, (timestamp_ms, due_ms), headers)
        self._let_go(self._observed.value - wait_ms)

    def _hold(self, key: Any, change: Change, times: tuple[int, int], headers: Headers) -> None:
        name = self._encode_key(key)
        timestamp_ms, due_ms = times
        old = None if change.old is None else self._encode(change.old)
        new = None if change.new is None else self._encode(change.new)
        prior, before = old, b""
        place = self._store.get(b"k" + name)
        if place is None:
            place = _TIME.pack(due_ms)
            self._store.put(b"k" + name, place)
            self._count(1, 0)
            self._first_due.value = min(self._first_due.value, due_ms)
        else:
            before = self._store.get(b"t" + place + name) or b""
            prior = _decode_held(before).prior
        data = _encode_held(_Held(timestamp_ms, prior, old, new, headers))
        self._store.put(b"t" + place + name, data)
        self._count(0, len(data) - len(before))

    def _count(self, records: int, size_bytes: int) -> None:
        self._records.value = max(0, self._records.value) + records
        self._bytes.value = max(0, self._bytes.value) + size_bytes

    def _let_go(self, due_ms: int) -> None:
        """Lets go what waited until `due_ms`, and the oldest while there is too much."""
        if due_ms >= 0 and due_ms >= self._first_due.value:
            end = b"t" + _TIME.pack(due_ms + 1)
            for name, data in list(self._store.range(b"t", end)):
                self._emit(name, data)
            left = next(iter(self._store.range(end, b"u")), None)
            self._first_due.value = (
                LAST_TIME_MS if left is None else _TIME.unpack_from(left[0], 1)[0]
            )
        if not self._is_full():
            return
        if self._operator.suppressed.fails_when_full:
            node = self._wiring.node.name
            raise BufferOverflow(node, self._records.value, self._bytes.value)
        for name, data in list(self._store.range(b"t", b"u")):
            if not self._is_full():
                return
            self._emit(name, data)

    def _is_full(self) -> bool:
        suppressed = self._operator.suppressed
        records_max, bytes_max = suppressed.records_max, suppressed.bytes_max
        return (records_max is not None and self._records.value > records_max) or (
            bytes_max is not None and self._bytes.value > bytes_max
        )

    def _emit(self, name: bytes, data: bytes) -> None:
        self._store.delete(name)
        self._store.delete(b"k" + name[9:])
        self._count(-1, -len(data))
        held = _decode_held(data)
        if held.new is None and self._operator.suppressed.wait_ms is None:
            return  # a window that is gone before it closed was never told of
        change = Change(self._value(held.new), self._value(held.old))
        key = self._decode_key(name[9:])
        self._wiring.forward(key, change, held.timestamp_ms, held.headers)

    def _value(self, data: bytes | None) -> Any:
        return None if data is None else self._decode(data)


def suppressed_lookup(operator: Suppress, wiring: Wiring, above: Lookup) -> Lookup:
    """What those below a suppression may know: while an update waits, what was before it."""
    store, spec = wiring.stores.raw(operator.store), wiring.stores.specs[operator.store]
    encode_key, decode = spec.key.serializer(), spec.value.deserializer()

    def look_up(key: Any) -> tuple[Any, int] | None:
        name = encode_key(key)
        place = store.get(b"k" + name)
        if place is None:
            return above(key)
        data = store.get(b"t" + place + name)
        prior = None if data is None else _decode_held(data).prior
        return None if prior is None else (decode(prior), -1)

    return look_up
