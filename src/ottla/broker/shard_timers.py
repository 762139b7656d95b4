"""The timers of one shard. Does not know what they are for.

Members put their sessions off with every heartbeat and commit, and hardly ever let one end. So a
timer that is put off stays where it is in the loop's schedule, and is set anew only if it comes up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ottla.coordination.decision import StartTimer, TimerChange, TimerKey


class _Timer:
    """One that runs: when it is due, and when the loop will look at it, which is no later."""

    __slots__ = ("due", "handle")

    def __init__(self, due: float, handle: asyncio.TimerHandle) -> None:
        self.due = due
        self.handle = handle


class ShardTimers:
    """Calls `fire` with the key of a timer whose time has come."""

    def __init__(self, fire: Callable[[TimerKey], None]) -> None:
        self._fire = fire
        self._running: dict[TimerKey, _Timer] = {}

    def change(self, change: TimerChange) -> None:
        """Starts a timer, whatever it was set to before, or stops it."""
        key = change.key
        timer = self._running.get(key)
        if not isinstance(change, StartTimer):
            if timer is not None:
                del self._running[key]
                timer.handle.cancel()
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + change.delay_ms / 1000
        if timer is not None:
            if due >= timer.handle.when():
                timer.due = due
                return
            timer.handle.cancel()
        self._running[key] = _Timer(due, loop.call_at(due, self._look, key))

    def stop(self) -> None:
        """None of them fires any more."""
        for timer in self._running.values():
            timer.handle.cancel()
        self._running.clear()

    def _look(self, key: TimerKey) -> None:
        timer = self._running[key]
        if timer.due > timer.handle.when():
            timer.handle = asyncio.get_running_loop().call_at(timer.due, self._look, key)
            return
        del self._running[key]
        self._fire(key)
