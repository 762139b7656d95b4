"""Takes leaders' wishes to change their sets in sync to the metadata store, one by one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final

from ottla.broker.partition import Partition
from ottla.broker.partitions import Partitions
from ottla.cluster.changes import change_in_sync
from ottla.cluster.image import Draft, PartitionImage
from ottla.cluster.in_sync import InSync
from ottla.cluster.metadata import ClusterMetadata
from ottla.cluster.store import StoreError
from ottla.errors import OttlaError
from ottla.model.ids import BrokerId

RETRY_SECONDS: Final = 1.0

log = logging.getLogger(__name__)


class InSyncChanges:
    """Carries out proposals, and looks for members that lag."""

    def __init__(self, metadata: ClusterMetadata, partitions: Partitions, lag_ms_max: int) -> None:
        self._metadata = metadata
        self._partitions = partitions
        self._check_seconds = lag_ms_max / 2000
        self._running: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begins to look for members that lag."""
        self._begin(self._watch_lag())

    async def stop(self) -> None:
        """Ends what runs; a proposal under way is answered by the metadata later."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def change(self, partition: Partition, members: frozenset[BrokerId]) -> None:
        """Proposes a set; the partition reckons with it from now on."""
        in_sync = partition.in_sync
        assert in_sync is not None
        in_sync.propose(members)
        partition.in_sync_changed()
        self._begin(self._propose(partition, members))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _propose(self, partition: Partition, members: frozenset[BrokerId]) -> None:
        in_sync = partition.in_sync
        # A proposal whose answer was lost stands, and is made again until the metadata tells.
        while in_sync is not None and in_sync is partition.in_sync and in_sync.proposal is not None:
            if await self._is_settled(partition, in_sync, members):
                return
            await asyncio.sleep(RETRY_SECONDS)

    async def _is_settled(
        self, partition: Partition, in_sync: InSync, members: frozenset[BrokerId]
    ) -> bool:
        """Makes a proposal; False where nobody knows what became of it."""
        name = partition.id
        led = self._metadata.image.partition(name.topic, name.partition)
        if led is None or led.leader_epoch != partition.leader_epoch:
            return True  # Newer metadata is on its way and will say what holds.

        def decide(draft: Draft) -> PartitionImage:
            return change_in_sync(draft, name.topic, name.partition, led=led, isr=members)

        try:
            changed = await self._metadata.change_as_leader(decide)
        except StoreError as error:
            log.warning("%s: a change of its replicas in sync was lost: %s", name, error)
            return False
        except OttlaError as error:
            log.info("%s: its replicas in sync stay as they are: %s", name, error)
            if partition.in_sync is in_sync:
                in_sync.refused()
                partition.in_sync_changed()
            return True
        log.info("%s: in sync are %s", name, ", ".join(map(str, changed.isr)))
        partition.take_role(changed)
        return True

    async def _watch_lag(self) -> None:
        while True:
            await asyncio.sleep(self._check_seconds)
            for partition in self._partitions:
                partition.drop_laggards()
