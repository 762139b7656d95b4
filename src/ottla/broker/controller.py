"""Carries out changes of the cluster: decided purely, stored, then made true on this broker.

Invariants:
1. One change at a time; each is decided on the image the one before left.
2. A change that was stored is applied, even if the client that asked for it is gone by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ottla.broker.cluster_follower import ClusterFollower
from ottla.broker.cluster_view import ClusterView
from ottla.broker.leaderships import Leaderships
from ottla.broker.resources import ResourceType, broker_entity
from ottla.broker.unique_ids import new_topic_id, new_turn
from ottla.cluster.changes import (
    NewTopic,
    add_partitions,
    create_topic,
    delete_topic,
)
from ottla.cluster.config_changes import (
    Alteration,
    alter_broker_config,
    alter_group_config,
    alter_topic_config,
    replace_broker_config,
    replace_group_config,
    replace_topic_config,
)
from ottla.cluster.image import Draft, TopicImage
from ottla.cluster.metadata import ClusterMetadata
from ottla.errors import OttlaError

T = TypeVar("T")


class Controller:
    """The only writer of the cluster's metadata."""

    def __init__(
        self, metadata: ClusterMetadata, view: ClusterView, follower: ClusterFollower
    ) -> None:
        self._metadata = metadata
        self._view = view
        self._follower = follower
        self.leaderships = Leaderships(metadata, view)
        self._one_at_a_time = asyncio.Lock()
        self._running: set[asyncio.Task[object]] = set()

    async def create_topics(
        self, wishes: Sequence[NewTopic], *, validate_only: bool
    ) -> list[TopicImage | OttlaError]:
        """Creates what can be created; for each wish the topic, or why not."""
        return await self._exclusively(lambda: self._create_topics(wishes, validate_only))

    async def delete_topics(self, names: Sequence[str]) -> dict[str, OttlaError]:
        """Deletes topics; says which could not be deleted, and why."""
        return await self._exclusively(lambda: self._delete_topics(names))

    async def add_partitions(
        self,
        topic: str,
        partition_count: int,
        assignments: Sequence[Sequence[int]] | None,
        *,
        validate_only: bool,
    ) -> None:
        """Lets a topic grow."""

        def decide(draft: Draft) -> None:
            add_partitions(draft, topic, partition_count, assignments=assignments, turn=new_turn())
            if validate_only:
                draft.operations.clear()

        async def grow() -> None:
            await self._metadata.change(decide)
            await self._follower.caught_up()

        await self._exclusively(grow)

    async def replace_configs(
        self, kind: ResourceType, name: str, texts: dict[str, str], *, validate_only: bool
    ) -> None:
        """Lets a topic, broker or group have just these settings of its own."""

        def change(draft: Draft) -> None:
            settings = self._view.settings
            match kind:
                case ResourceType.TOPIC:
                    replace_topic_config(draft, name, texts, settings)
                case ResourceType.BROKER:
                    replace_broker_config(draft, broker_entity(name, draft.base.brokers), texts)
                case ResourceType.GROUP:
                    replace_group_config(draft, name, texts, settings.groups)

        await self._exclusively(lambda: self._configure(change, validate_only))

    async def alter_configs(
        self,
        kind: ResourceType,
        name: str,
        alterations: Sequence[Alteration],
        *,
        validate_only: bool,
    ) -> None:
        """Changes single settings of a topic, broker or group."""

        def change(draft: Draft) -> None:
            settings = self._view.settings
            match kind:
                case ResourceType.TOPIC:
                    alter_topic_config(draft, name, alterations, settings)
                case ResourceType.BROKER:
                    entity = broker_entity(name, draft.base.brokers)
                    alter_broker_config(draft, entity, alterations)
                case ResourceType.GROUP:
                    alter_group_config(draft, name, alterations, settings.groups)

        await self._exclusively(lambda: self._configure(change, validate_only))

    async def change(self, decide: Callable[[Draft], T], *, validate_only: bool = False) -> T:
        """Carries out a change that is nothing but metadata: no log and no topic is touched."""

        def decided(draft: Draft) -> T:
            result = decide(draft)
            if validate_only:
                draft.operations.clear()
            return result

        return await self._exclusively(lambda: self._metadata.change(decided))

    # --- one change ---

    async def _create_topics(
        self, wishes: Sequence[NewTopic], validate_only: bool
    ) -> list[TopicImage | OttlaError]:
        def decide(draft: Draft) -> list[TopicImage | OttlaError]:
            outcomes = [self._created(draft, wish) for wish in wishes]
            if validate_only:
                draft.operations.clear()
            return outcomes

        outcomes = await self._metadata.change(decide)
        await self._follower.caught_up()
        return outcomes

    def _created(self, draft: Draft, wish: NewTopic) -> TopicImage | OttlaError:
        settings = self._view.settings
        try:
            return create_topic(
                draft, wish, topic_id=new_topic_id(), turn=new_turn(), settings=settings
            )
        except OttlaError as error:
            return error

    async def _delete_topics(self, names: Sequence[str]) -> dict[str, OttlaError]:
        failed: dict[str, OttlaError] = {}

        def decide(draft: Draft) -> None:
            failed.clear()
            for name in names:
                try:
                    delete_topic(draft, name)
                except OttlaError as error:
                    failed[name] = error

        await self._metadata.change(decide)
        await self._follower.caught_up()
        return failed

    async def _configure(self, change: Callable[[Draft], None], validate_only: bool) -> None:
        def decide(draft: Draft) -> None:
            change(draft)
            if validate_only:
                draft.operations.clear()

        await self._metadata.change(decide)
        await self._follower.caught_up()

    async def _exclusively(self, change: Callable[[], Awaitable[T]]) -> T:
        """Runs a change to its end, whatever becomes of the caller."""

        async def run() -> T:
            async with self._one_at_a_time:
                return await change()

        task = asyncio.get_running_loop().create_task(run())
        self._running.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    async def finish(self) -> None:
        """Returns when no change is under way any more."""
        await asyncio.gather(*self._running, return_exceptions=True)

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # Seen, even if the client that would have been told is gone.
