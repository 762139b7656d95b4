"""The picture of a cluster with one partition, as its leader sees and changes it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from ottla.cluster.image import ClusterImage, Draft, PartitionImage, TopicImage
from unit.broker.cluster import a_partition, a_picture, a_topic
from unit.broker.stage import ME, THREE, TOPIC_ID, TWO

ALL = (ME, TWO, THREE)


def the_topic(partition: PartitionImage) -> TopicImage:
    return replace(a_topic("topic", partition), id=TOPIC_ID)


class Metadata:
    """A cluster's picture that leaders change, unless it was told to fail them."""

    def __init__(self, *, leader: int = ME, epoch: int = 0) -> None:
        self.image = a_picture(the_topic(a_partition(0, leader, *ALL, epoch=epoch)), brokers=ALL)
        self.failures: deque[Exception] = deque()
        self.attempts = 0
        self.held_until: asyncio.Event | None = None
        self.observers: list[Callable[[ClusterImage], None]] = []

    async def change_as_leader(self, decide: Callable[[Draft], Any]) -> Any:
        self.attempts += 1
        if self.held_until is not None:
            await self.held_until.wait()
        if self.failures:
            raise self.failures.popleft()
        draft = Draft(self.image)
        changed = decide(draft)
        self.image = draft.image()
        for observer in self.observers:
            observer(self.image)
        return changed

    @property
    def isr(self) -> set[int]:
        return set(self.image.topics["topic"].partitions[0].isr)
