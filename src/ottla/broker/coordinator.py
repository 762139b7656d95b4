"""All shards of one internal topic on this broker: groups' or transactions'.

Creates the topic when it is first needed, loads a shard for each of its partitions, and finds the
shard for a key.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

import msgspec

from ottla.broker.cluster_view import ClusterView
from ottla.broker.controller import Controller
from ottla.broker.partition import Partition
from ottla.broker.partitions import Partitions
from ottla.broker.shard_runtime import Shard, ShardRuntime
from ottla.cluster.changes import NewTopic
from ottla.coordination.partitioning import partition_of
from ottla.errors import ErrorCode, OttlaError, RequestFailed, TopicExists
from ottla.model.clock import Clock
from ottla.model.ids import TopicPartition

S = TypeVar("S", bound=Shard)

log = logging.getLogger(__name__)


class InternalTopic(msgspec.Struct, frozen=True):
    """The compacted topic a kind of coordinator keeps its state in."""

    name: str
    partition_count: int
    configs: Mapping[str, str]


class RunningShard(msgspec.Struct, Generic[S], frozen=True):
    """A shard with what runs it."""

    shard: S
    runtime: ShardRuntime


class Coordinator(Generic[S]):
    """The coordinator of one kind."""

    def __init__(
        self,
        topic: InternalTopic,
        make_shard: Callable[[Partition], S],
        partitions: Partitions,
        view: ClusterView,
        clock: Clock,
    ) -> None:
        self.topic = topic
        self._make_shard = make_shard
        self._partitions = partitions
        self._view = view
        self._clock = clock
        self._running: dict[int, RunningShard[S]] = {}
        self._loads: set[asyncio.Task[None]] = set()

    def __iter__(self) -> Iterator[RunningShard[S]]:
        return iter(tuple(self._running.values()))

    async def ensure_topic(self, controller: Controller) -> None:
        """Creates the internal topic if it is not there, and waits until its shards are loaded."""
        if self.topic.name not in self._view.image.topics:
            wish = NewTopic(self.topic.name, self.topic.partition_count, configs=self.topic.configs)
            (outcome,) = await controller.create_topics([wish], validate_only=False)
            if isinstance(outcome, OttlaError) and not isinstance(outcome, TopicExists):
                log.error("%s cannot be created: %s", self.topic.name, outcome)
                raise RequestFailed(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self.start()
        if self._loads:
            await asyncio.wait(self._loads)

    def start(self) -> None:
        """Begins to load a shard for each partition of the topic that has none yet."""
        for index, partition in self._partitions.of_topic(self.topic.name).items():
            if index in self._running:
                continue
            shard = self._make_shard(partition)
            runtime = ShardRuntime(partition, shard, self._clock)
            self._running[index] = RunningShard(shard, runtime)
            task = asyncio.get_running_loop().create_task(runtime.load())
            self._loads.add(task)
            task.add_done_callback(self._loads.discard)

    def stop(self) -> None:
        """Ends all shards; whoever waits is told that the coordinator is elsewhere."""
        for task in self._loads:
            task.cancel()
        for running in self._running.values():
            running.runtime.close()
        self._running.clear()

    def partition_of(self, key: str) -> TopicPartition:
        """The partition of the internal topic that keeps a key."""
        topic = self._view.image.topics.get(self.topic.name)
        if topic is None:
            raise RequestFailed(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return TopicPartition(topic.name, partition_of(key, len(topic.partitions)))

    def at(self, partition: int) -> RunningShard[S] | None:
        """The shard on one partition, if this broker runs it."""
        return self._running.get(partition)

    def find(self, key: str) -> RunningShard[S]:
        """The shard that keeps a key, ready to be asked."""
        partition = self.partition_of(key).partition
        if partition not in self._running:
            # Whoever created the topic may have gone before it could start all shards.
            self.start()
        running = self._running.get(partition)
        if running is None:
            raise RequestFailed(ErrorCode.NOT_COORDINATOR)
        running.runtime.check_ready()
        return running
