"""A clock a test can turn on: the broker's timers and its time of day move together."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any, cast

from ottla.net.direct_loop import direct_selector


class MovableLoop(asyncio.SelectorEventLoop):
    """An event loop that is ahead of real time by as much as it was told.

    Every timer of the broker is a timer of its loop, so moving the loop's time makes all that
    became due happen at once, in order.
    """

    def __init__(self) -> None:
        self.ahead_seconds = 0.0
        self.direct = direct_selector(self)
        super().__init__(cast("Any", self.direct))

    def time(self) -> float:
        return super().time() + self.ahead_seconds


class MovableClock:
    """The clock of a broker under test. Time passes as usual, and jumps when told to."""

    def __init__(self, loop: MovableLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return int((time.time() + self._loop.ahead_seconds) * 1000)

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def advance(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0) -> None:
        """Moves the broker's time on and returns once everything then due has begun."""
        amount = seconds + 60 * minutes + 3600 * hours
        if amount < 0:
            raise ValueError("time does not go back: advance by zero or more")
        if not self._loop.is_running():  # not started yet: it will begin at that time
            self._loop.ahead_seconds += amount
            return
        moved = threading.Event()

        def move() -> None:
            self._loop.ahead_seconds += amount
            # Due timers run in the loop's next round; the one after it comes behind them.
            self._loop.call_soon(self._loop.call_soon, moved.set)

        self._loop.call_soon_threadsafe(move)
        moved.wait()
