"""A partition with its log in memory, and the rest of the broker played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from ottla.broker.partition import Partition, Services
from ottla.broker.partitions import Partitions
from ottla.broker.standing import Standing
from ottla.cluster.image import NO_BROKER, PartitionImage
from ottla.cluster.session import Session
from ottla.model.ids import BrokerId, LeaderEpoch, Offset, TopicId, TopicPartition
from ottla.storage.checkpoint import CheckpointJob
from ottla.storage.simulated_disk import SimulatedDisk
from unit.storage.logs import SetClock, World, batch, flush, settings

ME, TWO, THREE = BrokerId(1), BrokerId(2), BrokerId(3)
NOBODY = NO_BROKER
LAG_MS = 30_000
TOPIC_ID = TopicId(b"a topic's own id")


def an_image(
    leader: BrokerId = ME,
    *,
    epoch: int = 0,
    replicas: Iterable[BrokerId] = (ME,),
    isr: Iterable[BrokerId] | None = None,
    partition_epoch: int = 0,
) -> PartitionImage:
    """What the metadata says of the partition."""
    held = tuple(replicas)
    return PartitionImage(
        index=0,
        leader=leader,
        leader_epoch=LeaderEpoch(epoch),
        isr=held if isr is None else tuple(isr),
        replicas=held,
        partition_epoch=partition_epoch,
    )


class Wishes:
    """Keeps what a leader wishes its set to be, and lets it reckon with it."""

    def __init__(self) -> None:
        self.asked: list[frozenset[BrokerId]] = []

    def change(self, partition: Partition, members: frozenset[BrokerId]) -> None:
        self.asked.append(members)
        assert partition.in_sync is not None
        partition.in_sync.propose(members)
        partition.in_sync_changed()


class Pleas:
    """Keeps which partitions could not be written, and finds no other leader for them."""

    def __init__(self) -> None:
        self.heard: list[Partition] = []

    def ask(self, partition: Partition) -> None:
        self.heard.append(partition)

    def hand_over(self, partition: Partition, lagging: frozenset[BrokerId]) -> bool:
        return False


class Flushes:
    """Keeps which partitions are to be synced until the test does it."""

    def __init__(self) -> None:
        self.due: list[Partition] = []

    def add(self, partition: Partition) -> None:
        self.due.append(partition)

    def run(self) -> None:
        due, self.due = self.due, []
        for partition in due:
            flush(partition.log)
            partition.flushed()

    async def sync(self, partition: Partition) -> None:
        self.sync_now(partition)

    def sync_now(self, partition: Partition) -> None:
        job = partition.log.begin_flush()
        job.run()
        partition.log.finish_flush(job)
        partition.log.flusher.cut_is_safe(job, partition.log.segments)
        partition.flushed()


class Notes:
    """Keeps how often somebody wanted it written down how far logs are safe, and may fail at it."""

    def __init__(self) -> None:
        self.count = 0
        self.disk = SimulatedDisk()

    def begin_checkpoints(self) -> CheckpointJob:
        self.count += 1
        return CheckpointJob(self.disk, "/data", {"points": {}}, {})


class Stage:
    """One partition, its disk, its clock and its neighbours."""

    def __init__(self, image: PartitionImage | None = None, **changes: Any) -> None:
        self.world = World(settings(**changes))
        self.clock: SetClock = self.world.clock
        self.flushes = Flushes()
        self.wishes = Wishes()
        self.session = Session(never_ends=True)
        self.standing = Standing(ME, self.clock, LAG_MS, self.session)
        self.pleas = Pleas()
        self.services = Services(self.standing, self.flushes, self.wishes, self.pleas)
        self.partition = Partition(
            TopicPartition("topic", 0), TOPIC_ID, self.world.open(), self.services
        )
        if image is not None:
            self.partition.take_role(image)

    @property
    def partitions(self) -> Partitions:
        held = Partitions()
        held.add(self.partition)
        return held

    def append(self, *values: bytes) -> int:
        """Appends a batch; the offset after it."""
        return self.partition.append(batch(*values)).end_offset

    def committed(self, end_offset: int, *, seconds: float = 10.0) -> asyncio.Future[None]:
        """A wait that has begun."""
        deadline = asyncio.get_running_loop().time() + seconds
        return self.partition.committed(Offset(end_offset), deadline)

    @property
    def high_watermark(self) -> int:
        return self.partition.log.high_watermark
