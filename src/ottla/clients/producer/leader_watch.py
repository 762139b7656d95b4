"""Keeps a producer's picture of the cluster up to date: who leads the partitions it writes to.

Looks when somebody says that leadership may have changed, and by age. Runs on the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from ottla.clients.client import Client
from ottla.clients.metadata import TopicInfo
from ottla.clients.producer.accumulator import Accumulator
from ottla.clients.producer.routing import Route
from ottla.errors import OttlaError

AGE_SECONDS_MAX: Final = 86_400.0

_log = logging.getLogger("ottla.clients.producer")


class LeaderWatch:
    """The routes of one producer, and the task that looks at them anew."""

    __slots__ = ("_accumulator", "_aging", "_client", "_has_ended", "_looked", "_looking")

    def __init__(
        self, client: Client, accumulator: Accumulator, looked: Callable[[], None]
    ) -> None:
        self._client = client
        self._accumulator = accumulator
        self._looked = looked
        """Told when there is a new picture."""
        self._looking: asyncio.Task[None] | None = None
        self._aging: asyncio.Task[None] | None = None
        self._has_ended = False

    def start(self, age_ms: int) -> None:
        """Look at least this often."""
        age_s = min(age_ms / 1000, AGE_SECONDS_MAX)
        self._aging = asyncio.create_task(self._look_by_age(age_s))

    def end(self) -> list[asyncio.Task[None]]:
        """Look no more; the tasks that end now."""
        self._has_ended = True
        tasks = [task for task in (self._looking, self._aging) if task is not None]
        for task in tasks:
            task.cancel()
        return tasks

    def update(self, info: TopicInfo) -> Route:
        """Take over what is newly known of a topic; its route."""
        with self._accumulator.lock:
            route = self._accumulator.routes.get(info.name)
            if route is None:
                route = self._accumulator.routes[info.name] = Route(info)
            else:
                route.update(info)
            return route

    def look_soon(self) -> None:
        """Leadership may have changed: look, once for however many reasons."""
        # Also while the producer closes: what still waits may have to go to another leader.
        if not self._has_ended and (self._looking is None or self._looking.done()):
            self._looking = asyncio.create_task(self._look())

    async def _look(self) -> None:
        failures = 0
        while True:
            try:
                await self._refresh()
                break
            except OttlaError as error:
                failures += 1
                _log.info("the cluster cannot be looked at: %s", error)
                await asyncio.sleep(self._client.options.retries.wait_s(failures))
        if any(min(route.leaders, default=0) < 0 for route in self._accumulator.routes.values()):
            await asyncio.sleep(self._client.options.retries.wait_s(1))
        self._looked()

    async def _refresh(self) -> None:
        topics = list(self._accumulator.routes)
        picture = await self._client.refresh(topics)
        for name in topics:
            if name in picture.topics and not picture.topics[name].error:
                self.update(picture.topics[name])

    async def _look_by_age(self, age_s: float) -> None:
        while True:
            await asyncio.sleep(age_s)
            self.look_soon()
