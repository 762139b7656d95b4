"""A broker's view of a cluster whose pictures a test paints, with its logs in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.broker.cluster_follower import ClusterFollower
from ottla.broker.cluster_view import ClusterView
from ottla.broker.partition import Partition, Services
from ottla.broker.partitions import Partitions
from ottla.broker.replicas import Replicas
from ottla.broker.standing import Standing
from ottla.cluster.image import (
    BrokerImage,
    ClusterImage,
    ConfigImage,
    PartitionImage,
    TopicImage,
)
from ottla.model.ids import BrokerId, LeaderEpoch, TopicId
from ottla.storage.log_directory import LogDirectory
from ottla.storage.simulated_disk import SimulatedDisk
from unit.broker.stage import LAG_MS, ME, Flushes, Pleas, Wishes
from unit.storage.logs import SetClock


def a_topic(
    name: str,
    *partitions: PartitionImage,
    incarnation: int = 0,
    configs: dict[str, str] | None = None,
) -> TopicImage:
    topic_id = TopicId(f"{name} {incarnation}".encode().ljust(16, b"."))
    return TopicImage(name, topic_id, partitions, configs or {})


def a_partition(
    index: int, leader: int, *replicas: int, epoch: int = 0, isr: Iterable[int] | None = None
) -> PartitionImage:
    held = tuple(map(BrokerId, replicas))
    return PartitionImage(
        index=index,
        leader=BrokerId(leader),
        leader_epoch=LeaderEpoch(epoch),
        isr=held if isr is None else tuple(map(BrokerId, isr)),
        replicas=held,
        partition_epoch=epoch,
    )


def a_picture(
    *topics: TopicImage,
    brokers: Iterable[int] = (1,),
    configs: dict[str, str] | None = None,
    deleted: Iterable[TopicImage] = (),
) -> ClusterImage:
    return ClusterImage(
        cluster_id="test",
        brokers={
            BrokerId(number): BrokerImage(BrokerId(number), (f"PLAINTEXT://b{number}:9",), None, 1)
            for number in brokers
        },
        topics={topic.name: topic for topic in topics},
        topic_names={topic.id: topic.name for topic in topics},
        broker_configs={} if configs is None else {"<default>": ConfigImage(configs, 1)},
        deleted_topics={topic.id: None for topic in deleted},
    )


class Pictures:
    """Stands for the metadata: the picture of now, and who is told of the next."""

    def __init__(self, image: ClusterImage | None = None) -> None:
        self.image = image or a_picture()
        self.observers: list[Any] = []

    def show(self, image: ClusterImage) -> None:
        self.image = image
        for observer in self.observers:
            observer(image)


class Following:
    """Stands for replication: keeps whom this broker follows in what."""

    def __init__(self) -> None:
        self.leaders: dict[str, int | None] = {}
        self.events: list[str] = []

    def update(self, partition: Partition) -> None:
        self.events.append(f"update {partition.id}")
        self.leaders[str(partition.id)] = None if partition.is_leader else partition.leader

    def leave(self, partition: Partition) -> None:
        self.events.append(f"leave {partition.id}")
        self.leaders.pop(str(partition.id), None)

    async def stop(self) -> None:
        self.events.append("stop")


class Member:
    """One broker of the cluster, as far as pictures reach."""

    def __init__(self, image: ClusterImage | None = None) -> None:
        self.clock = SetClock()
        self.disk = SimulatedDisk()
        self.directory = LogDirectory.open(self.disk, "/data", self.clock)
        self.pictures = Pictures(image)
        self.view = ClusterView(self.pictures, ME, {})  # type: ignore[arg-type]
        self.partitions = Partitions()
        self.flushes = Flushes()
        services = Services(Standing(ME, self.clock, LAG_MS), self.flushes, Wishes(), Pleas())
        self.replicas = Replicas(self.partitions, self.directory, self.view, services)
        self.following = Following()
        self.follower = ClusterFollower(
            self.pictures,  # type: ignore[arg-type]
            self.view,
            self.partitions,
            self.replicas,
            self.following,  # type: ignore[arg-type]
        )

    async def show(self, image: ClusterImage) -> None:
        """A new picture, and the broker as it says."""
        self.pictures.show(image)
        await self.follower.caught_up()

    def held(self) -> dict[str, tuple[bytes, int | None, int, bool]]:
        """What this broker holds: topic id, leader, epoch and whether it leads, by partition."""
        return {
            str(each.id): (each.topic_id, each.leader, each.leader_epoch, each.is_leader)
            for each in self.partitions
        }


def expected(image: ClusterImage) -> dict[str, tuple[bytes, int | None, int, bool]]:
    """What the picture says that this broker holds."""
    return {
        f"{topic.name}-{each.index}": (
            topic.id,
            each.leader if each.has_leader else None,
            each.leader_epoch,
            each.leader == ME,
        )
        for topic in image.topics.values()
        for each in topic.partitions
        if ME in each.replicas
    }
