"""Makes this broker do what the cluster's picture says: logs, roles, settings, replication.

Pictures are applied one after another, each as the difference to the one before. Whoever changed
the cluster can wait until this broker has caught up with the change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from ottla.broker.cluster_view import ClusterView
from ottla.broker.partitions import Partitions
from ottla.broker.replicas import Replicas
from ottla.broker.replication import Replication
from ottla.cluster.image import ClusterImage, TopicImage
from ottla.cluster.metadata import ClusterMetadata
from ottla.errors import OttlaError

RETRY_SECONDS: Final = 10.0
"""How soon a log that could not be opened is tried again."""

ROLES_PER_TURN: Final = 64

log = logging.getLogger(__name__)


class Difference(msgspec.Struct, frozen=True):
    """What one picture has that another has not."""

    deleted: tuple[TopicImage, ...]
    """Gone, or re-created under the same name."""
    changed: tuple[TopicImage, ...]
    """New, or with other partitions, leaders or settings."""
    is_broker_configured: bool
    are_brokers_changed: bool


def difference(old: ClusterImage, new: ClusterImage) -> Difference:
    """What has to be done to get from one picture to the other."""
    if old.topics is new.topics:
        deleted: list[TopicImage] = []
        changed: list[TopicImage] = []
    else:
        deleted = [
            topic
            for name, topic in old.topics.items()
            if (now := new.topics.get(name)) is None or now.id != topic.id
        ]
        changed = [topic for name, topic in new.topics.items() if old.topics.get(name) != topic]
    return Difference(
        tuple(deleted),
        tuple(changed),
        old.broker_configs != new.broker_configs,
        old.brokers != new.brokers,
    )


class ClusterFollower:
    """Applies pictures in order."""

    def __init__(
        self,
        metadata: ClusterMetadata,
        view: ClusterView,
        partitions: Partitions,
        replicas: Replicas,
        replication: Replication,
    ) -> None:
        self._metadata = metadata
        self._view = view
        self._partitions = partitions
        self._replicas = replicas
        self._replication = replication
        self.observers: list[Callable[[Difference], None]] = []
        """Told what was applied, once it was."""
        self._applied = ClusterImage()
        self._told_count = 0
        self._applied_count = 0
        """How many pictures have come, and how many of them are true here: later ones include
        earlier ones."""
        self._incomplete: set[str] = set()
        """Topics with a partition whose log could not be opened or that could not take its role."""
        self._news = asyncio.Event()
        self._caught_up = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Applies the picture of now, and from then on each that follows."""
        await self._apply(self._metadata.image)
        self._metadata.observers.append(self._told)
        self._news.set()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Applies no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._replication.stop()

    async def caught_up(self) -> None:
        """Returns when the picture of now is true on this broker."""
        count = self._told_count
        async with self._caught_up:
            await self._caught_up.wait_for(lambda: self._applied_count >= count)

    def _told(self, _image: ClusterImage) -> None:
        self._told_count += 1
        self._news.set()

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            if self._incomplete:
                await self._complete()
            while True:
                count, image = self._told_count, self._metadata.image
                if image is not self._applied:
                    await self._apply(image)
                async with self._caught_up:
                    self._applied_count = count
                    self._caught_up.notify_all()
                if count == self._told_count:
                    break

    async def _complete(self) -> None:
        """Tries again to open what could not be opened."""
        topics = self._applied.topics
        incomplete = [topic for name in self._incomplete if (topic := topics.get(name))]
        self._incomplete.clear()
        await self._create(incomplete)
        for topic in incomplete:
            await self._take_roles(topic)

    async def _create(self, topics: Iterable[TopicImage]) -> None:
        for topic in await self._replicas.create(topics):
            self._try_again(topic)

    def _try_again(self, topic: TopicImage) -> None:
        if not self._incomplete:
            asyncio.get_running_loop().call_later(RETRY_SECONDS, self._news.set)
        self._incomplete.add(topic.name)

    async def _apply(self, image: ClusterImage) -> None:
        found = difference(self._applied, image)
        if found.is_broker_configured:
            self._view.configured()
        await self._delete(found)
        await self._create(found.changed)
        if found.are_brokers_changed:
            for topic in image.topics.values():
                await self._take_roles(topic)
        else:
            for topic in found.changed:
                await self._take_roles(topic, self._applied.topics.get(topic.name))
        self._replicas.configure(
            image.topics.values() if found.is_broker_configured else found.changed
        )
        self._applied = image
        for observer in self.observers:
            observer(found)

    async def _delete(self, found: Difference) -> None:
        for topic in found.deleted:
            for partition in self._partitions.of_topic(topic.name).values():
                self._replication.leave(partition)
        await self._replicas.delete(found.deleted)
        for topic in found.changed:
            if taken_away := self._replicas.taken_away(topic):
                for partition in taken_away:
                    self._replication.leave(partition)
                await self._replicas.remove(taken_away)

    async def _take_roles(self, topic: TopicImage, before: TopicImage | None = None) -> None:
        """Of all partitions, or of those that are not as they were before."""
        known = before.partitions if before is not None and before.id == topic.id else ()
        taken = 0
        for index, partition in tuple(self._partitions.of_topic(topic.name).items()):
            if index < len(known) and known[index] == topic.partitions[index]:
                continue
            taken += 1
            if not taken % ROLES_PER_TURN:
                await asyncio.sleep(0)  # A new epoch is a file to write: others wait meanwhile.
            try:
                partition.take_role(topic.partitions[index])
            except OttlaError as error:
                log.error("%s cannot take its role: %s", partition.id, error)
                self._try_again(topic)
                continue
            self._replication.update(partition)
