"""A cluster as its controller sees it: a metadata store in memory, and brokers that come and go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

from ottla.broker.cluster_view import ClusterView
from ottla.broker.controller_duties import ControllerDuties
from ottla.broker.leaderships import Leaderships
from ottla.cluster import layout
from ottla.cluster.changes import NewTopic, change_in_sync, create_topic
from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.image import Draft, PartitionImage
from ottla.cluster.metadata import ClusterMetadata
from ottla.cluster.placement import Turn
from ottla.cluster.store import Create, Delete
from ottla.model.ids import BrokerId, TopicId, TopicPartition
from ottla.settings import BrokerSettings
from unit.net.running import turns

ONE, TWO, THREE, FOUR = (BrokerId(number) for number in (1, 2, 3, 4))


class ControlledCluster:
    """The metadata, one controller at a time, and the brokers of the test's choosing."""

    def __init__(self, metadata: ClusterMetadata) -> None:
        self.metadata = metadata
        self._begin()

    def _begin(self) -> None:
        self.view = ClusterView(self.metadata, ONE, {})
        self.leaderships = Leaderships(self.metadata, self.view)
        self.duties = ControllerDuties(self.metadata, self.leaderships, self.view)

    @property
    def partition(self) -> PartitionImage:
        """The first partition of the first topic."""
        return next(iter(self.metadata.image.topics.values())).partitions[0]

    def first_partitions(self) -> list[PartitionImage]:
        """The first partition of every topic, by name."""
        topics = self.metadata.image.topics
        return [topics[name].partitions[0] for name in sorted(topics)]

    def state(self) -> tuple[int, tuple[int, ...]]:
        """Who leads the first partition, and who is in sync."""
        return self.partition.leader, self.partition.isr

    async def come(self, *brokers: BrokerId, rack: str | None = None) -> None:
        """Brokers register."""
        for broker in brokers:
            node = layout.BrokerNode(
                host="h",
                port=broker,
                endpoints=(f"PLAINTEXT://h:{broker}",),
                timestamp="0",
                rack=rack,
                listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
            )
            create = Create(layout.broker_path(broker), layout.encode(node), is_ephemeral=True)
            await self.metadata.store.multi([create])
        await settled()

    async def go(self, *brokers: BrokerId) -> None:
        """Sessions of brokers end, all at the same time."""
        await self.metadata.store.multi([Delete(layout.broker_path(broker)) for broker in brokers])
        await settled()

    async def topic(
        self,
        name: str,
        *assignments: Sequence[BrokerId],
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Makes a topic with its replicas there."""
        wish = NewTopic(name, assignments=dict(enumerate(assignments)), configs=configs or {})

        def decide(draft: Draft) -> None:
            topic_id = TopicId(name.encode().ljust(16, b"."))
            create_topic(draft, wish, topic_id=topic_id, turn=Turn(), settings=BrokerSettings())

        await self.metadata.change(decide)
        await settled()

    async def in_sync(self, key: TopicPartition, isr: Iterable[BrokerId]) -> None:
        """The leader of a partition changes its set in sync."""
        members = tuple(isr)

        def decide(draft: Draft) -> PartitionImage:
            led = draft.topics[key.topic].partitions[key.partition]
            return change_in_sync(draft, key.topic, key.partition, led=led, isr=members)

        await self.metadata.change_as_leader(decide)
        await settled()

    async def move_controller(self) -> None:
        """Another broker becomes controller, with nothing but what it reads."""
        await self.duties.stop()
        await self.metadata.resign()
        await self.metadata.stop_following()
        store = self.metadata.store
        self.metadata = await ClusterMetadata.open(store, cluster_id="test")
        epoch = self.metadata.image.controller_epoch
        await self.metadata.become_controller(TWO, now_ms=epoch)
        self._begin()
        self.metadata.follow()
        self.duties.start()
        await settled()


@asynccontextmanager
async def a_controlled_cluster(*brokers: BrokerId) -> AsyncIterator[ControlledCluster]:
    """A cluster whose controller is at work."""
    store = await EmbeddedStore.open(None)
    metadata = await ClusterMetadata.open(store, cluster_id="test")
    cluster = ControlledCluster(metadata)
    await metadata.become_controller(ONE, now_ms=0)
    metadata.follow()
    await cluster.come(*brokers)
    cluster.duties.start()
    await settled()
    try:
        yield cluster
    finally:
        await cluster.duties.stop()
        await cluster.metadata.stop_following()


async def settled() -> None:
    """Lets news travel and everything that follows from them happen."""
    await turns(60)
