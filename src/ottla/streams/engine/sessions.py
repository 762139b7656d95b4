"""Aggregates over sessions: windows that grow together when a record closes the gap."""

from __future__ import annotations

from typing import Any

from ottla.streams.engine.changes import Change
from ottla.streams.engine.records import Headers
from ottla.streams.engine.session_store import SessionStore
from ottla.streams.engine.windowing import Results, Windowing
from ottla.streams.engine.wiring import DropReason, Wiring
from ottla.streams.operators import WindowAggregate
from ottla.streams.windowed import Windowed
from ottla.streams.windows import SessionWindows


class SessionAggregate:
    """One result for each key and session. What a record merges is deleted first."""

    __slots__ = ("_store", "_windowing", "_windows", "_wiring")

    def __init__(self, operator: WindowAggregate, wiring: Wiring) -> None:
        assert isinstance(operator.windows, SessionWindows)
        self._windows = operator.windows
        self._windowing = Windowing(operator, wiring)
        self._wiring = wiring
        self._store: SessionStore = wiring.stores.typed(operator.store)

    def process(self, key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            self._wiring.drop(DropReason.NULL_KEY)
            return
        gap_ms, folding = self._windows.gap_ms, self._windowing.folding
        close_ms = self._windowing.observe(timestamp_ms) - self._windows.grace_ms - gap_ms
        self._windowing.send_closed(close_ms, self._closed_between, headers)
        start_ms = end_ms = timestamp_ms
        result = folding.begin()
        merged = self._store.find(key, max(0, timestamp_ms - gap_ms), timestamp_ms + gap_ms)
        for session, other in merged:
            result = folding.merge(key, result, other)
            start_ms, end_ms = min(start_ms, session.start_ms), max(end_ms, session.end_ms)
        if end_ms < close_ms:
            self._wiring.drop(DropReason.LATE)
        else:
            whole = Windowed(key, start_ms, end_ms)
            if (start_ms, end_ms) != (timestamp_ms, timestamp_ms):
                self._forget(merged, headers)
            result = folding.add(key, value, result)
            self._store.put(whole, result)
            self._windowing.send_update(whole, Change(result), end_ms, headers)

    def _forget(self, merged: list[tuple[Windowed, Any]], headers: Headers) -> None:
        for session, _ in merged:
            old = self._store.get(session)  # merging may have changed the value in place
            self._store.put(session, None)
            change = Change(None, old if self._windowing.sends_old else None)
            self._windowing.send_update(session, change, session.end_ms, headers)

    def _closed_between(self, last_ms: int, close_ms: int) -> Results:
        """Sessions with last <= end < close."""
        found = self._store.ending_in(max(0, last_ms), close_ms)
        return ((session, result, session.end_ms) for session, result in found)
