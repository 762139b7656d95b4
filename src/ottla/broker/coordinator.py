"""All shards of one internal topic on this broker: groups' or transactions'.

A shard runs for each partition of the topic that this broker leads, and for no other: `update`
loads and drops shards as leadership comes and goes. Creates the topic when it is first needed, and
finds the shard for a key.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from ottla.broker.cluster_follower import Difference
from ottla.broker.cluster_view import ClusterView
from ottla.broker.metadata_store import is_shared
from ottla.broker.partition import Partition
from ottla.broker.partitions import Partitions
from ottla.broker.shard_runtime import Shard, ShardRuntime
from ottla.cluster.changes import NewTopic
from ottla.cluster.image import NO_BROKER, TopicImage
from ottla.coordination.partitioning import partition_of
from ottla.errors import ErrorCode, OttlaError, RequestFailed, TopicExists
from ottla.model.clock import Clock
from ottla.model.ids import BrokerId, TopicPartition
from ottla.net.turns import Turns

LOAD_SECONDS_MAX: Final = 1.0
"""How long whoever looks for a coordinator waits for it to be loaded, rather than ask again."""
RELOAD_SECONDS: Final = 10.0
"""How soon a shard is loaded anew whose log could not be read."""

S = TypeVar("S", bound=Shard)

log = logging.getLogger(__name__)


class InternalTopic(msgspec.Struct, frozen=True):
    """The compacted topic a kind of coordinator keeps its state in."""

    name: str
    partition_count: int
    replication_factor: int
    configs: Mapping[str, str]
    commit_seconds_max: float
    """How long a request waits for the replicas before it is answered with an error."""


class TopicCreator(Protocol):
    """Has topics created, here or by the controller elsewhere."""

    async def create_topics(
        self, wishes: Sequence[NewTopic], *, validate_only: bool
    ) -> Sequence[TopicImage | OttlaError]: ...


class RunningShard(msgspec.Struct, Generic[S], frozen=True):
    """A shard with what runs it."""

    shard: S
    runtime: ShardRuntime
    loading: asyncio.Task[None]


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
        self.turns = Turns()
        """Where shards that are loaded stand in line; a broker has one line for all its work."""
        self._make_shard = make_shard
        self._partitions = partitions
        self._view = view
        self._clock = clock
        self._running: dict[int, RunningShard[S]] = {}
        self._is_stopped = False

    @property
    def broker_id(self) -> BrokerId:
        """This broker."""
        return self._view.broker_id

    def __iter__(self) -> Iterator[RunningShard[S]]:
        return iter(tuple(self._running.values()))

    async def ensure_topic(self, creator: TopicCreator) -> None:
        """Has the internal topic created if it is not there."""
        if self.topic.name in self._view.image.topics:
            return
        wish = NewTopic(
            self.topic.name,
            self.topic.partition_count,
            self._replication_factor(),
            configs=self.topic.configs,
        )
        try:
            (outcome,) = await creator.create_topics([wish], validate_only=False)
        except OttlaError as error:  # there is no controller, or it cannot be reached
            outcome = error
        if isinstance(outcome, OttlaError) and not isinstance(outcome, TopicExists):
            log.error("%s cannot be created: %s", self.topic.name, outcome)
            raise RequestFailed(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _replication_factor(self) -> int:
        """As many as the settings say, or none; but a broker that stands alone has only itself."""
        return self.topic.replication_factor if is_shared(self._view.settings) else 1

    def changed(self, found: Difference) -> None:
        """The cluster has changed, and this broker's roles with it."""
        names = {topic.name for topic in (*found.deleted, *found.changed)}
        if self.topic.name in names or found.are_brokers_changed:
            self.update()

    def update(self) -> None:
        """Runs a shard for each partition of the topic that this broker leads, and no other.

        Called whenever leadership, its epoch or this broker's right to lead may have changed.
        """
        held = self._partitions.of_topic(self.topic.name)
        for index, running in tuple(self._running.items()):
            if not running.runtime.runs_on(held.get(index)):
                self._drop(index)
        for index, partition in held.items():
            if index not in self._running and partition.leads_for_certain and not self._is_stopped:
                self._running[index] = self._load(partition)

    def _load(self, partition: Partition) -> RunningShard[S]:
        shard = self._make_shard(partition)
        runtime = ShardRuntime(
            partition,
            shard,
            self._clock,
            commit_seconds_max=self.topic.commit_seconds_max,
            turns=self.turns,
        )
        loading = asyncio.get_running_loop().create_task(self._run_load(runtime))
        return RunningShard(shard, runtime, loading)

    async def _run_load(self, runtime: ShardRuntime) -> None:
        await runtime.load()
        if runtime.is_current and not runtime.is_ready:
            asyncio.get_running_loop().call_later(RELOAD_SECONDS, self._load_anew, runtime)

    def _load_anew(self, runtime: ShardRuntime) -> None:
        runtime.close()
        self.update()

    def _drop(self, index: int) -> None:
        running = self._running.pop(index)
        running.loading.cancel()
        running.runtime.close()

    def stop(self) -> None:
        """Ends all shards; whoever waits is told that the coordinator is elsewhere."""
        self._is_stopped = True
        for index in tuple(self._running):
            self._drop(index)

    def partition_of(self, key: str) -> TopicPartition:
        """The partition of the internal topic that keeps a key."""
        topic = self._view.image.topics.get(self.topic.name)
        if topic is None:
            raise RequestFailed(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return TopicPartition(topic.name, partition_of(key, len(topic.partitions)))

    def broker_of(self, key: str) -> BrokerId:
        """The broker that coordinates a key."""
        partition = self.partition_of(key)
        image = self._view.image.partition(partition.topic, partition.partition)
        if image is None or image.leader == NO_BROKER:
            raise RequestFailed(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return image.leader

    async def wait_loaded(self, key: str) -> None:
        """Returns when the shard of a key can be asked, if it is here; but soon in any case."""
        running = self._current(self.partition_of(key).partition)
        if running is not None and not running.loading.done():
            await asyncio.wait([running.loading], timeout=LOAD_SECONDS_MAX)

    def at(self, partition: int) -> RunningShard[S] | None:
        """The shard on one partition, if this broker runs it."""
        return self._running.get(partition)

    def find(self, key: str) -> RunningShard[S]:
        """The shard that keeps a key, ready to be asked."""
        partition = self.partition_of(key).partition
        running = self._running.get(partition)
        if running is None or not running.runtime.is_ready:
            running = self._current(partition)
            if running is None:
                raise RequestFailed(ErrorCode.NOT_COORDINATOR)
            running.runtime.check_ready()
        return running

    def _current(self, partition: int) -> RunningShard[S] | None:
        running = self._running.get(partition)
        if running is None or not running.runtime.is_current:
            # Roles are taken partition by partition; this one may not have been told of yet.
            self.update()
            running = self._running.get(partition)
        return running
