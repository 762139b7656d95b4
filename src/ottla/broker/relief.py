"""Lets others lead what this broker cannot: its disk is full or fails, or no follower reaches it.

A leader that could not write takes no more records, and waits until all who are in sync have what
it has: so nothing is lost that it accepted, be it acknowledged by one replica or by all. Then it
takes itself out of the set in sync and leads no more; the controller elects one of the others. It
asks its successor for nothing before its disk takes something again, and so does not come back into
the set, nor to lead, while it cannot write.

Where nobody else is in sync it goes on leading: what is there can be read, and may be written again
as soon as there is room. So where all disks are full, the last one keeps the partition.

A leader that reaches the metadata store but is asked by none of its followers cannot commit, and
with fewer in sync than the topic asks for it would take nothing written with acks=all. If enough
other replicas are alive, it gives up instead of shrinking the set, and leaves it to those who are
in sync with it: they have all that was acknowledged with acks=all. They cannot catch up with the
rest, so nothing is waited for: what only acks=1 acknowledged is lost, as when a leader dies. Every
hand-over makes the set smaller, and only a follower that replicates makes it larger again: so
leadership does not go around among brokers none of whom reaches another.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from ottla.broker.partition import Partition
from ottla.broker.standing import Standing
from ottla.cluster.image import PartitionImage
from ottla.cluster.metadata import ClusterMetadata
from ottla.cluster.renunciation import give_up
from ottla.cluster.store import StoreError
from ottla.errors import OttlaError
from ottla.model.ids import BrokerId, LeaderEpoch, TopicPartition

CATCH_UP_SECONDS: Final = 5.0
"""As long the others may take to have everything. Else the leader goes on, and asks again when the
next record cannot be written: whoever lags leaves the set meanwhile."""
RETRY_SECONDS: Final = 1.0

log = logging.getLogger(__name__)


class Relief:
    """Takes leaders' wishes to be relieved to the metadata store, and looks after the ailing."""

    def __init__(
        self,
        metadata: ClusterMetadata,
        standing: Standing,
        has_room: Callable[[], Awaitable[bool]],
    ) -> None:
        """`has_room` finds out whether the disk takes something."""
        self._metadata = metadata
        self._standing = standing
        self._has_room = has_room
        self._ailing: dict[TopicPartition, Partition] = {}
        """Given up, until they can be written."""
        self._handed_over: set[TopicPartition] = set()
        """Those whose hand-over is under way."""
        self._running: set[asyncio.Task[None]] = set()
        self._nurse: asyncio.Task[None] | None = None

    async def stop(self) -> None:
        """Relieves nobody more; a change under way is finished by the metadata."""
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def ask(self, partition: Partition) -> None:
        """The partition's leader could not write: if another can lead, another shall."""
        if partition.is_ailing or not self._can_be_relieved(partition):
            return
        partition.is_ailing = True
        self._begin(self._relieve(partition))

    def hand_over(self, partition: Partition, lagging: frozenset[BrokerId]) -> bool:
        """Members of the leader's set lag. If too few would be left without them, and they do not
        even ask, another shall lead; whether that is under way."""
        name = partition.id
        if name in self._handed_over:
            return True
        needed = self._needed_elsewhere(partition, lagging)
        if not needed or partition.is_ailing or not self._can_be_relieved(partition):
            return False
        image = self._metadata.image
        led = image.partition(name.topic, name.partition)
        assert led is not None, "this broker leads it"
        others = {each for each in led.replicas if each != led.leader and each in image.brokers}
        if len(others) < needed or others.isdisjoint(led.isr):
            return False
        self._handed_over.add(name)
        self._begin(self._hand_over(name, partition.leader_epoch))
        return True

    def _needed_elsewhere(self, partition: Partition, lagging: frozenset[BrokerId]) -> int:
        """How many others it takes to do better than this leader; zero if it can go on itself."""
        in_sync, standing = partition.in_sync, self._standing
        assert in_sync is not None, "only a leader knows who lags"
        needed = in_sync.needed(partition.log.settings.min_insync_replicas)
        now_ms = standing.clock.monotonic_ms()
        is_left_alone = in_sync.is_cut_off(lagging, now_ms, standing.lag_ms_max)
        return needed if len(in_sync.members - lagging) < needed and is_left_alone else 0

    async def _hand_over(self, name: TopicPartition, epoch: LeaderEpoch) -> None:
        leader = self._standing.broker_id
        try:
            state = await self._metadata.change_as_leader(
                lambda draft: give_up(draft, name, leader, epoch)
            )
        except OttlaError as error:
            # If it may have happened, the metadata tells. Else the next look at lag asks again.
            log.warning("%s: no follower reaches this leader, and it leads on: %s", name, error)
            return
        finally:
            self._handed_over.discard(name)
        others = ", ".join(map(str, state.isr))
        log.warning("%s: no follower reaches this leader: one of %s is to lead it", name, others)

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def _can_be_relieved(self, partition: Partition) -> bool:
        """Whether this broker leads, as far as it knows, and others could."""
        name = partition.id
        led = self._metadata.image.partition(name.topic, name.partition)
        return (
            led is not None
            and (led.leader, led.leader_epoch) == (self._standing.broker_id, partition.leader_epoch)
            and len(led.isr) > 1
        )

    async def _relieve(self, partition: Partition) -> None:
        name, epoch = partition.id, partition.leader_epoch
        try:
            deadline = asyncio.get_running_loop().time() + CATCH_UP_SECONDS
            await partition.wait_committed(partition.log.end_offset, deadline)
            state = await self._give_up(name, epoch)
        except OttlaError as error:
            log.warning("%s cannot be written, and nobody else leads it yet: %s", name, error)
            if partition.leader_epoch == epoch or not partition.is_leader:
                partition.is_ailing = False
            return
        others = ", ".join(map(str, state.isr))
        log.warning("%s cannot be written here: one of %s is to lead it", name, others)
        self._ailing[name] = partition
        if self._nurse is None or self._nurse.done():
            self._nurse = self._begin(self._look_after())

    async def _give_up(self, name: TopicPartition, epoch: LeaderEpoch) -> PartitionImage:
        leader = self._standing.broker_id
        while True:
            try:
                return await self._metadata.change_as_leader(
                    lambda draft: give_up(draft, name, leader, epoch)
                )
            except StoreError as error:
                # It may have happened all the same: then the next attempt finds that out.
                log.warning("%s was not given up yet: %s", name, error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _look_after(self) -> None:
        """Lets partitions follow their new leaders as soon as they can be written."""
        while self._ailing:
            await asyncio.sleep(RETRY_SECONDS)
            if not await self._has_room():
                continue
            ailing, self._ailing = self._ailing, {}
            for name, partition in ailing.items():
                if partition.log.is_fenced:
                    self._ailing[name] = partition  # it has to be opened again before
                else:
                    partition.is_ailing = False
            if count := len(ailing) - len(self._ailing):
                log.info("the disk takes something again: %d partitions follow", count)
