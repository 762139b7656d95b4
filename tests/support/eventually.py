"""Waits for a condition instead of for time."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

PAUSE_SECONDS = 0.01


class NeverHappened(AssertionError):
    """The condition did not come true in time."""


def eventually(
    condition: Callable[[], Found | None], what: str, *, timeout_seconds: float = 60.0
) -> Found:
    """Return the first true answer of `condition`; an OSError counts as "not yet"."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        problem: OSError | None = None
        try:
            found = condition()
        except OSError as error:
            found, problem = None, error
        if found:
            return found
        if time.monotonic() > deadline:
            raise NeverHappened(f"{what} did not happen in {timeout_seconds} s") from problem
        time.sleep(PAUSE_SECONDS)


async def eventually_async(
    condition: Callable[[], object], *, timeout_seconds: float = 30.0
) -> None:
    """Return when `condition` is true, while everything else on the loop goes on."""
    async with asyncio.timeout(timeout_seconds):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)
