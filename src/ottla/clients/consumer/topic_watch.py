"""Keeps the picture of the topics a consumer wants fresh: by age, and when something is amiss."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

from ottla.clients.client import Client
from ottla.clients.connection_settings import ConnectionSettings
from ottla.clients.consumer.assignors import Racks
from ottla.clients.consumer.settings import ConsumerSettings
from ottla.clients.consumer.subscription import Subscription
from ottla.errors import OttlaError
from ottla.model.ids import TopicPartition

_log = logging.getLogger("ottla.clients.consumer")


class TopicWatch:
    """The topics of a subscription, by name or pattern."""

    __slots__ = (
        "_age_s",
        "_changed",
        "_client",
        "_is_closed",
        "_looking",
        "_matched",
        "_refresher",
        "_settings",
        "_subscription",
    )

    def __init__(
        self,
        client: Client,
        subscription: Subscription,
        connection: ConnectionSettings,
        settings: ConsumerSettings,
        changed: Callable[[dict[str, int] | None], None],
    ) -> None:
        self._client = client
        self._subscription = subscription
        self._settings = settings
        self._age_s = min(connection.metadata_max_age_ms / 1000, 86_400.0)
        self._changed = changed
        self._matched: tuple[str, frozenset[str]] | None = None
        """What the pattern (by its text) matched last."""
        self._looking: asyncio.Task[None] | None = None
        self._refresher: asyncio.Task[None] | None = None
        self._is_closed = False

    def start(self) -> None:
        """Begins to look by age."""
        self._refresher = asyncio.create_task(self._refresh_by_age())

    async def close(self) -> None:
        """Stops looking, for good."""
        self._is_closed = True
        for task in (self._looking, self._refresher):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    def topics(self) -> frozenset[str]:
        """What the subscription means now."""
        pattern = self._subscription.pattern
        if pattern is None:
            return self._subscription.topics
        return self._matched[1] if self._matched is not None else frozenset()

    async def ready(self) -> None:
        """Returns when a pattern has been matched once."""
        pattern = self._subscription.pattern
        if pattern is None:
            self._matched = None
        elif self._matched is None or self._matched[0] != pattern.pattern:
            await self._client.retrying(self._refresh)

    async def counts(self, topics: Collection[str]) -> dict[str, int]:
        """How many partitions each of the topics has; those that are not there are left out."""
        may_create = self._settings.allow_auto_create_topics
        picture = await self._client.refresh(sorted(topics), may_create=may_create)
        found = {name: picture.topics.get(name) for name in topics}
        return {
            name: len(info.partitions)
            for name, info in found.items()
            if info is not None and not info.error
        }

    def racks(self, topics: Collection[str]) -> Racks:
        """Where the replicas of the topics' partitions are; nothing where no broker says."""
        picture = self._client.picture
        rack_of = {broker.id: broker.rack for broker in picture.brokers.values() if broker.rack}
        return {
            TopicPartition(name, row.partition): frozenset(
                rack_of[replica] for replica in row.replicas if replica in rack_of
            )
            for name in topics
            if rack_of and name in picture.topics
            for row in picture.topics[name].partitions
        }

    async def names_of(self, ids: Collection[bytes]) -> dict[bytes, str]:
        """The names of topics by their ids, as far as they are known."""
        known = self._known_ids()
        if any(each not in known for each in ids):
            await self._client.refresh(None)
            known = self._known_ids()
        return {each: known[each] for each in ids if each in known}

    def _known_ids(self) -> dict[bytes, str]:
        return {bytes(info.id): name for name, info in self._client.picture.topics.items()}

    def look_soon(self) -> None:
        """Something is amiss: look, once for however many reasons."""
        if not self._is_closed and (self._looking is None or self._looking.done()):
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
        # A leader that is missing is asked for again, but not at once.
        await asyncio.sleep(self._client.options.retries.wait_s(1) / 2)

    async def _refresh(self) -> None:
        pattern = self._subscription.pattern
        if pattern is None:
            topics = self._subscription.topics | {w.topic for w in self._subscription.states}
            counts = await self.counts(topics)
            wanted = self._subscription.topics
            self._changed({name: count for name, count in counts.items() if name in wanted})
            return
        picture = await self._client.refresh(None)
        matched = frozenset(
            name
            for name, info in picture.topics.items()
            if pattern.search(name)
            and not info.error
            and not (info.is_internal and self._settings.exclude_internal_topics)
        )
        before = self._matched
        self._matched = (pattern.pattern, matched)
        is_new = before is None or before[0] != pattern.pattern
        if not is_new and before is not None and before[1] != matched:
            self._changed(None)
        else:
            self._changed({name: len(picture.topics[name].partitions) for name in matched})

    async def _refresh_by_age(self) -> None:
        while True:
            await asyncio.sleep(self._age_s)
            self.look_soon()
