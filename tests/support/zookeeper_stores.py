"""Stores on a real ZooKeeper, opened for one scenario, and waiting for what becomes of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from ottla.broker.system_clock import SystemClock
from ottla.cluster.session import SessionEvent
from ottla.cluster.zookeeper import ZooKeeperStore

CLOCK = SystemClock()
WAIT_SECONDS = 40.0


@asynccontextmanager
async def a_store(address: str) -> AsyncIterator[ZooKeeperStore]:
    store = await ZooKeeperStore.open(address, CLOCK)
    try:
        yield store
    finally:
        await store.close()


def play(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(100):
            await scenario()

    asyncio.run(bounded())


async def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen"
        await asyncio.sleep(0.01)


def is_alive(store: ZooKeeperStore) -> bool:
    return store.session.is_alive(CLOCK.monotonic_ms())


def events_of(store: ZooKeeperStore) -> list[SessionEvent]:
    events: list[SessionEvent] = []
    store.session.listeners.append(events.append)
    return events
