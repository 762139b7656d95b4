"""Aggregates of streams: without windows, and over tumbling and hopping windows."""

from __future__ import annotations

from typing import Any

from ottla.streams.engine.changes import Change
from ottla.streams.engine.functions import Folding
from ottla.streams.engine.progress import UNKNOWN
from ottla.streams.engine.records import Headers
from ottla.streams.engine.table_store import TableStore
from ottla.streams.engine.window_store import WindowStore
from ottla.streams.engine.wiring import DropReason, Forward, Wiring
from ottla.streams.operators import Aggregate, WindowAggregate
from ottla.streams.windowed import Windowed
from ottla.streams.windows import TimeWindows


def aggregate(operator: Aggregate, wiring: Wiring) -> Forward:
    forward, sends_old = wiring.forward, operator.sends_old
    store: TableStore = wiring.stores.typed(operator.store)
    folding = Folding(operator.aggregation)
    begin, add = folding.begin, folding.add

    def aggregated(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None or value is None:
            wiring.drop(DropReason.NULL_KEY if key is None else DropReason.NULL_VALUE)
            return
        found = store.get(key)
        if found is None:
            before = begin()
        else:
            before, seen_ms = found
            timestamp_ms = max(timestamp_ms, seen_ms)
        # an aggregator may change its result in place: the old one is read again if needed
        result = add(key, value, before)
        if sends_old:
            again = store.get(key)
            before = begin() if again is None else again[0]
        store.put(key, result, timestamp_ms)
        forward(key, Change(result, before if sends_old else None), timestamp_ms, headers)

    return aggregated


class TimeWindowAggregate:
    """One result for each key and window [start, start + size)."""

    __slots__ = (
        "_closed",
        "_emits_on_close",
        "_folding",
        "_observed",
        "_sends_old",
        "_store",
        "_windows",
        "_wiring",
    )

    def __init__(self, operator: WindowAggregate, wiring: Wiring) -> None:
        assert isinstance(operator.windows, TimeWindows)
        self._windows = operator.windows
        self._wiring = wiring
        self._store: WindowStore = wiring.stores.typed(operator.store)
        self._folding = Folding(operator.aggregation)
        self._emits_on_close, self._sends_old = operator.emits_on_close, operator.sends_old
        self._observed, self._closed = wiring.cell("observed"), wiring.cell("closed")

    def process(self, key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            self._wiring.drop(DropReason.NULL_KEY)
            return
        if timestamp_ms > self._observed.value:
            self._observed.value = timestamp_ms
        close_ms = self._observed.value - self._windows.grace_ms
        size_ms = self._windows.size_ms
        if self._emits_on_close:  # first, for the record may be so new that they are forgotten
            self._emit_closed(close_ms, headers)
        for start_ms in self._windows.starts_for(timestamp_ms):
            if start_ms + size_ms > close_ms:
                self._update((key, value), start_ms, timestamp_ms, headers)
            else:
                self._wiring.drop(DropReason.LATE)

    def _update(
        self, record: tuple[Any, Any], start_ms: int, timestamp_ms: int, headers: Headers
    ) -> None:
        key, value = record
        found = self._store.get(key, start_ms)
        if found is None:
            before = self._folding.begin()
        else:
            before = found[0]
            timestamp_ms = max(timestamp_ms, found[1])
        result = self._folding.add(key, value, before)
        old = None
        if self._sends_old:  # read again, for the aggregator may have changed it in place
            again = self._store.get(key, start_ms)
            old = self._folding.begin() if again is None else again[0]
        self._store.put(key, start_ms, result, timestamp_ms)
        if not self._emits_on_close:
            windowed = Windowed(key, start_ms, start_ms + self._windows.size_ms)
            self._wiring.forward(windowed, Change(result, old), timestamp_ms, headers)

    def _emit_closed(self, close_ms: int, headers: Headers) -> None:
        """Windows whose end has passed since the last time: last < end <= close."""
        last_ms = self._closed.value
        if close_ms <= last_ms:
            return
        size_ms = self._windows.size_ms
        first_ms = 0 if last_ms == UNKNOWN else max(0, last_ms - size_ms + 1)
        if close_ms - size_ms >= 0:
            closed = list(self._store.fetch_all(first_ms, close_ms - size_ms + 1))
            self._closed.value = close_ms
            for windowed, result, timestamp_ms in closed:
                self._wiring.forward(windowed, Change(result), timestamp_ms, headers)
