"""What aggregates over windows of every kind share: how late it is, and when results are sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ottla.streams.engine.changes import Change
from ottla.streams.engine.functions import Folding
from ottla.streams.engine.records import Headers
from ottla.streams.engine.wiring import Wiring
from ottla.streams.operators import WindowAggregate
from ottla.streams.windowed import Windowed

Results = Iterable[tuple[Windowed, Any, int]]
"""Windows with their results and the time of these."""


class Windowing:
    """One node's own time and its way of sending. Does not know what its windows are like."""

    __slots__ = ("_closed", "_forward", "_observed", "emits_on_close", "folding", "sends_old")

    def __init__(self, operator: WindowAggregate, wiring: Wiring) -> None:
        self.folding = Folding(operator.aggregation)
        self.emits_on_close, self.sends_old = operator.emits_on_close, operator.sends_old
        self._forward = wiring.forward
        self._observed, self._closed = wiring.cell("observed"), wiring.cell("closed")

    def observe(self, timestamp_ms: int) -> int:
        """The newest time that was seen here, with this one."""
        if timestamp_ms > self._observed.value:
            self._observed.value = timestamp_ms
        return self._observed.value

    def send_update(
        self, windowed: Windowed, change: Change, timestamp_ms: int, headers: Headers
    ) -> None:
        """Sends it on, unless only what is final is sent."""
        if not self.emits_on_close:
            self._forward(windowed, change, timestamp_ms, headers)

    def send_closed(
        self, close_ms: int, closed_between: Callable[[int, int], Results], headers: Headers
    ) -> None:
        """Sends what is final by now, once: `closed_between` the last time and this one.

        Before a record is added, which may be so new that the store forgets them.
        """
        last_ms = self._closed.value
        if self.emits_on_close and close_ms > last_ms:
            closed = list(closed_between(last_ms, close_ms))
            self._closed.value = close_ms
            for windowed, result, timestamp_ms in closed:
                self._forward(windowed, Change(result), timestamp_ms, headers)
