"""Aggregates over sessions: windows that grow together when a record closes the gap."""

from __future__ import annotations

from typing import Any

from ottla.streams.engine.changes import Change
from ottla.streams.engine.functions import Folding
from ottla.streams.engine.progress import UNKNOWN
from ottla.streams.engine.records import Headers
from ottla.streams.engine.session_store import SessionStore
from ottla.streams.engine.wiring import DropReason, Wiring
from ottla.streams.operators import WindowAggregate
from ottla.streams.windowed import Windowed
from ottla.streams.windows import SessionWindows


class SessionAggregate:
    """One result for each key and session. What a record merges is deleted first."""

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
        assert isinstance(operator.windows, SessionWindows)
        self._windows = operator.windows
        self._wiring = wiring
        self._store: SessionStore = wiring.stores.typed(operator.store)
        self._folding = Folding(operator.aggregation)
        self._emits_on_close, self._sends_old = operator.emits_on_close, operator.sends_old
        self._observed, self._closed = wiring.cell("observed"), wiring.cell("closed")

    def process(self, key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            self._wiring.drop(DropReason.NULL_KEY)
            return
        gap_ms = self._windows.gap_ms
        self._observed.value = max(self._observed.value, timestamp_ms)
        close_ms = self._observed.value - self._windows.grace_ms - gap_ms
        if self._emits_on_close:  # first, for the record may be so new that they are forgotten
            self._emit_closed(close_ms, headers)
        start_ms = end_ms = timestamp_ms
        result = self._folding.begin()
        merged = self._store.find(key, max(0, timestamp_ms - gap_ms), timestamp_ms + gap_ms)
        for session, other in merged:
            result = self._folding.merge(key, result, other)
            start_ms, end_ms = min(start_ms, session.start_ms), max(end_ms, session.end_ms)
        if end_ms < close_ms:
            self._wiring.drop(DropReason.LATE)
        else:
            whole = Windowed(key, start_ms, end_ms)
            if (start_ms, end_ms) != (timestamp_ms, timestamp_ms):
                self._forget(merged, headers)
            result = self._folding.add(key, value, result)
            self._store.put(whole, result)
            self._send(whole, Change(result), headers)

    def _forget(self, merged: list[tuple[Windowed, Any]], headers: Headers) -> None:
        for session, _ in merged:
            old = self._store.get(session)  # merging may have changed the value in place
            self._store.put(session, None)
            self._send(session, Change(None, old if self._sends_old else None), headers)

    def _send(self, session: Windowed, change: Change, headers: Headers) -> None:
        if not self._emits_on_close:
            self._wiring.forward(session, change, session.end_ms, headers)

    def _emit_closed(self, close_ms: int, headers: Headers) -> None:
        """Sessions whose end has passed since the last time: last <= end < close."""
        last_ms = self._closed.value
        if close_ms <= last_ms or close_ms - 1 < 0:
            return
        first_ms = 0 if last_ms == UNKNOWN else last_ms
        closed = list(self._store.ending_in(first_ms, close_ms))
        self._closed.value = close_ms
        for session, result in closed:
            self._wiring.forward(session, Change(result), session.end_ms, headers)
