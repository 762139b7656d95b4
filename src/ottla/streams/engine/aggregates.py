"""Aggregates of streams: without windows, and over tumbling and hopping windows."""

from __future__ import annotations

from typing import Any

from ottla.streams.engine.changes import Change
from ottla.streams.engine.functions import Folding
from ottla.streams.engine.records import Headers
from ottla.streams.engine.table_store import TableStore
from ottla.streams.engine.window_store import WindowStore
from ottla.streams.engine.windowing import Results, Windowing
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

    __slots__ = ("_store", "_windowing", "_windows", "_wiring")

    def __init__(self, operator: WindowAggregate, wiring: Wiring) -> None:
        assert isinstance(operator.windows, TimeWindows)
        self._windows = operator.windows
        self._windowing = Windowing(operator, wiring)
        self._wiring = wiring
        self._store: WindowStore = wiring.stores.typed(operator.store)

    def process(self, key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            self._wiring.drop(DropReason.NULL_KEY)
            return
        close_ms = self._windowing.observe(timestamp_ms) - self._windows.grace_ms
        size_ms = self._windows.size_ms
        self._windowing.send_closed(close_ms, self._closed_between, headers)
        for start_ms in self._windows.starts_for(timestamp_ms):
            if start_ms + size_ms > close_ms:
                self._update((key, value), start_ms, timestamp_ms, headers)
            else:
                self._wiring.drop(DropReason.LATE)

    def _update(
        self, record: tuple[Any, Any], start_ms: int, timestamp_ms: int, headers: Headers
    ) -> None:
        key, value = record
        folding = self._windowing.folding
        found = self._store.get(key, start_ms)
        if found is None:
            before = folding.begin()
        else:
            before = found[0]
            timestamp_ms = max(timestamp_ms, found[1])
        result = folding.add(key, value, before)
        old = None
        if self._windowing.sends_old:  # read again, for the aggregator may have changed it in place
            again = self._store.get(key, start_ms)
            old = folding.begin() if again is None else again[0]
        self._store.put(key, start_ms, result, timestamp_ms)
        windowed = Windowed(key, start_ms, start_ms + self._windows.size_ms)
        self._windowing.send_update(windowed, Change(result, old), timestamp_ms, headers)

    def _closed_between(self, last_ms: int, close_ms: int) -> Results:
        """Windows with last < end <= close."""
        size_ms = self._windows.size_ms
        return self._store.fetch_all(max(0, last_ms - size_ms + 1), close_ms - size_ms + 1)
