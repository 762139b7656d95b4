"""Lets others lead what this broker cannot write any more: its disk is full, or fails.

While it does, the leader takes no records, and waits until all who are in sync have what it has:
so nothing is lost that it accepted, be it acknowledged by one replica or by all. Then it takes
itself out of the set in sync and leads no more; the controller elects one of the others. It comes
back into the set when it can write again and has caught up.

Where nobody else is in sync it goes on leading: what is there can be read, and may be written again
as soon as there is space.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from ottla.broker.partition import Partition
from ottla.broker.standing import Standing
from ottla.cluster.image import PartitionImage
from ottla.cluster.metadata import ClusterMetadata
from ottla.cluster.renunciation import give_up
from ottla.cluster.store import StoreError
from ottla.errors import OttlaError
from ottla.model.ids import LeaderEpoch, TopicPartition

CATCH_UP_SECONDS: Final = 5.0
"""As long the others may take to have everything. Whoever takes longer leaves the set before."""
PAUSE_MS: Final = 60_000
"""So long a broker keeps what it was elected for again. Where all disks are full, a partition would
wander from one to the next without end."""

RETRY_SECONDS: Final = 1.0

log = logging.getLogger(__name__)


class Relief:
    """Takes leaders' wishes to be relieved to the metadata store."""

    def __init__(self, metadata: ClusterMetadata, standing: Standing) -> None:
        self._metadata = metadata
        self._standing = standing
        self._running: dict[TopicPartition, asyncio.Task[None]] = {}
        self._not_before_ms: dict[TopicPartition, int] = {}

    async def stop(self) -> None:
        """Relieves nobody more; a change under way is finished by the metadata."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def ask(self, partition: Partition) -> None:
        """The partition's leader could not write: if another can lead, another shall."""
        name, now_ms = partition.id, self._standing.clock.monotonic_ms()
        led = self._led(partition)
        if led is None or name in self._running or now_ms < self._not_before_ms.get(name, 0):
            return
        self._not_before_ms[name] = now_ms + PAUSE_MS
        partition.is_paused = True
        task = asyncio.get_running_loop().create_task(self._relieve(partition))
        self._running[name] = task
        task.add_done_callback(lambda _: self._running.pop(name, None))

    def _led(self, partition: Partition) -> PartitionImage | None:
        """The state in which this broker leads, and others could."""
        name = partition.id
        led = self._metadata.image.partition(name.topic, name.partition)
        if led is None or (led.leader, led.leader_epoch) != (
            self._standing.broker_id,
            partition.leader_epoch,
        ):
            return None
        return led if len(led.isr) > 1 else None

    async def _relieve(self, partition: Partition) -> None:
        name, epoch = partition.id, partition.leader_epoch
        try:
            deadline = asyncio.get_running_loop().time() + CATCH_UP_SECONDS
            await partition.wait_committed(partition.log.end_offset, deadline)
            state = await self._give_up(name, epoch)
        except OttlaError as error:
            log.warning("%s cannot be written, and nobody else leads it yet: %s", name, error)
            self._not_before_ms.pop(name, None)
            if partition.leader_epoch == epoch:
                partition.is_paused = False
            return
        # It stays paused: this broker follows from the moment on in which it applies the picture.
        others = ", ".join(map(str, state.isr))
        log.warning("%s cannot be written here: one of %s is to lead it", name, others)

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
