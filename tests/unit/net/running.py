"""Runs a test's coroutine on a loop of its own, never for long, and hears what the loop tells."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from ottla.testing.clock import MovableLoop

T = TypeVar("T")
SECONDS_MAX = 10.0


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result; an exception that only the loop heard of fails the test too."""
    unheard: list[dict[str, Any]] = []
    with asyncio.Runner(loop_factory=MovableLoop) as runner:
        loop = runner.get_loop()
        loop.set_exception_handler(lambda _loop, context: unheard.append(context))
        # By a clock of its own, since tests turn that of the loop.
        watchdog = threading.Timer(SECONDS_MAX, loop.call_soon_threadsafe, [_cancel_all, loop])
        watchdog.start()
        try:
            result = runner.run(coroutine)
        finally:
            watchdog.cancel()
            watchdog.join()
    assert not unheard, unheard
    return result


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()


async def turns(count: int = 10) -> None:
    """Lets all that is due happen."""
    for _ in range(count):
        await asyncio.sleep(0)


async def pass_time(seconds: float) -> None:
    """Moves the loop's time on, and lets what became due happen."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, MovableLoop)
    loop.ahead_seconds += seconds
    await turns()
