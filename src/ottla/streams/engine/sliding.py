"""Aggregates over sliding windows: a window ends at each record, and one begins behind each.

For a record at t its left window is [t - difference, t]; its right window [t + 1, t + 1 +
difference] is there once a later record falls into it. Times before the difference share one
first window [0, difference].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ottla.streams.engine.changes import Change
from ottla.streams.engine.records import Headers
from ottla.streams.engine.window_store import WindowStore
from ottla.streams.engine.windowing import Results, Windowing
from ottla.streams.engine.wiring import DropReason, Wiring
from ottla.streams.operators import WindowAggregate
from ottla.streams.windowed import Windowed
from ottla.streams.windows import SlidingWindows

Result = tuple[Any, int]
"""An aggregate, and the newest time in it."""


@dataclass(slots=True)
class _Neighbours:
    """What the windows around a record say."""

    starts: set[int]
    left: Result | None = None
    right: Result | None = None
    has_left: bool = False
    has_right: bool = False
    previous_ms: int | None = None


class SlidingAggregate:
    """One result for each key and each distinct set of records that fit into a window."""

    __slots__ = ("_grace_ms", "_span_ms", "_store", "_windowing", "_wiring")

    def __init__(self, operator: WindowAggregate, wiring: Wiring) -> None:
        assert isinstance(operator.windows, SlidingWindows)
        self._span_ms, self._grace_ms = operator.windows.difference_ms, operator.windows.grace_ms
        self._windowing = Windowing(operator, wiring)
        self._wiring = wiring
        self._store: WindowStore = wiring.stores.typed(operator.store)

    def process(self, key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None or value is None:
            self._wiring.drop(DropReason.NULL_KEY if key is None else DropReason.NULL_VALUE)
            return
        close_ms = self._windowing.observe(timestamp_ms) - self._grace_ms
        if timestamp_ms + self._span_ms < close_ms:
            self._wiring.drop(DropReason.LATE)
            return
        if timestamp_ms >= self._span_ms:
            self._windowing.send_closed(close_ms, self._closed_between, headers)
        step = _Step(key, value, timestamp_ms, headers, close_ms)
        if timestamp_ms < self._span_ms:
            self._process_early(step)
            return
        around = self._look_around(step)
        if around is not None:
            self._create(step, around)

    def _look_around(self, step: _Step) -> _Neighbours | None:
        """Updates the windows that hold the record, the latest first; None: nothing is missing."""
        timestamp_ms = step.timestamp_ms
        around = _Neighbours(set())
        first_ms = max(0, timestamp_ms - 2 * self._span_ms)
        for start_ms, *rest in reversed(self._store.fetch(step.key, first_ms, timestamp_ms + 2)):
            around.starts.add(start_ms)
            result, newest_ms = rest
            end_ms = start_ms + self._span_ms
            if start_ms == timestamp_ms + 1:
                around.has_right = True
            elif end_ms > timestamp_ms:
                around.right = around.right or (result, newest_ms)
                self._update(step, start_ms, self._again(step, start_ms))
            elif end_ms == timestamp_ms:
                around.has_left = True
                self._update(step, start_ms, (result, newest_ms))
                if newest_ms >= timestamp_ms:
                    return None
                around.previous_ms = newest_ms
            else:
                around.left, around.previous_ms = (result, newest_ms), newest_ms
                break
        return around

    def _process_early(self, step: _Step) -> None:
        """A record so early that its left window would begin before time does."""
        timestamp_ms = step.timestamp_ms
        around = _Neighbours(set())
        first: Result | None = None
        for start_ms, result, newest_ms in self._store.fetch(step.key, 0, timestamp_ms + 2):
            around.starts.add(start_ms)
            if start_ms == 0:
                first = (result, newest_ms)
                if newest_ms < timestamp_ms:
                    around.previous_ms = newest_ms
            elif start_ms <= timestamp_ms:
                around.right = (result, newest_ms)
                self._update(step, start_ms, self._again(step, start_ms))
            else:
                around.has_right = True
        if around.right is None and first is not None and first[1] > timestamp_ms:
            around.right = first
        if not around.has_right and around.right is not None and around.right[1] > timestamp_ms:
            self._create_right(step, around.right)
        if around.previous_ms is not None and around.previous_ms + 1 not in around.starts:
            self._update(step, around.previous_ms + 1, None)
        self._update(step, 0, None if first is None else self._again(step, 0))

    def _create(self, step: _Step, around: _Neighbours) -> None:
        """The windows that begin to exist with this record."""
        previous_ms, timestamp_ms = around.previous_ms, step.timestamp_ms
        if (
            previous_ms is not None
            and previous_ms + 1 not in around.starts
            and previous_ms + 1 + self._span_ms >= timestamp_ms
        ):
            self._update(step, previous_ms + 1, None)
        if not around.has_left:
            left = None
            if previous_ms is not None and timestamp_ms - self._span_ms <= previous_ms:
                left = around.left and (around.left[0], timestamp_ms)
            self._update(step, timestamp_ms - self._span_ms, left)
        if not around.has_right and around.right is not None and around.right[1] > timestamp_ms:
            self._create_right(step, around.right)

    def _create_right(self, step: _Step, right: Result) -> None:
        """The window behind the record: it holds others, not this one."""
        start_ms = step.timestamp_ms + 1
        self._store.put(step.key, start_ms, *right)
        self._send(step, start_ms, Change(right[0]), right[1])

    def _update(self, step: _Step, start_ms: int, found: Result | None) -> None:
        """Adds the record to a window, which begins with `found`."""
        if start_ms + self._span_ms < step.close_ms:
            self._wiring.drop(DropReason.LATE)
            return
        folding = self._windowing.folding
        result, newest_ms = found or (folding.begin(), step.timestamp_ms)
        old = None
        if self._windowing.sends_old:
            old = folding.begin() if found is None else self._copied(result)
        result = folding.add(step.key, step.value, result)
        newest_ms = max(newest_ms, step.timestamp_ms)
        self._store.put(step.key, start_ms, result, newest_ms)
        self._send(step, start_ms, Change(result, old), newest_ms)

    def _again(self, step: _Step, start_ms: int) -> Result | None:
        """A window's result read anew: an aggregator may change the one it is given in place."""
        return self._store.get(step.key, start_ms)

    def _copied(self, result: Any) -> Any:
        spec = self._store.spec
        return spec.value.deserializer()(spec.value.serializer()(result))

    def _send(self, step: _Step, start_ms: int, change: Change, timestamp_ms: int) -> None:
        windowed = Windowed(step.key, start_ms, start_ms + self._span_ms)
        self._windowing.send_update(windowed, change, timestamp_ms, step.headers)

    def _closed_between(self, last_ms: int, close_ms: int) -> Results:
        """Windows with last <= end < close."""
        return self._store.fetch_all(max(0, last_ms - self._span_ms), close_ms - self._span_ms)


@dataclass(frozen=True, slots=True)
class _Step:
    """The record being worked on."""

    key: Any
    value: Any
    timestamp_ms: int
    headers: Headers
    close_ms: int
