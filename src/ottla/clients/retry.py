"""Trying again: which errors are worth it, how often, and how long to wait in between."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from ottla.clients.failures import is_worth_retrying
from ottla.errors import OttlaError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most `attempts_max` attempts within `total_s`, waiting twice as long each time."""

    attempts_max: int = 12
    first_wait_s: float = 0.1
    longest_wait_s: float = 1.0
    total_s: float = 30.0

    def wait_s(self, failures: int, *, spread: float = 0.0) -> float:
        """How long to wait after so many failures; `spread` in [0, 1) takes up to half off."""
        full = min(self.longest_wait_s, self.first_wait_s * 2.0 ** (failures - 1))
        return full * (1.0 - spread / 2.0)


async def retry(
    policy: RetryPolicy,
    attempt: Callable[[], Awaitable[T]],
    *,
    before_again: Callable[[OttlaError], Awaitable[None]] | None = None,
) -> T:
    """Runs `attempt` until it succeeds, fails for good, or the policy's limits are reached."""
    deadline = time.monotonic() + policy.total_s
    failures = 0
    while True:
        try:
            return await attempt()
        except OttlaError as error:
            failures += 1
            wait_s = policy.wait_s(failures, spread=random.random())
            is_over = failures >= policy.attempts_max or time.monotonic() + wait_s > deadline
            if is_over or not is_worth_retrying(error):
                raise
            await asyncio.sleep(wait_s)
            if before_again is not None:
                await before_again(error)
