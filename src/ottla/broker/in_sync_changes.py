"""Takes leaders' wishes to change their sets in sync to the metadata store, one by one.

Nobody is wished in whom the cluster does not count among the living: the controller would take it
out again at once. Why somebody was wished out is logged, and remembered for a while.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from typing import Any, Final

import msgspec

from ottla.broker.partition import Partition
from ottla.broker.partitions import Partitions
from ottla.cluster.changes import change_in_sync, topic_of
from ottla.cluster.image import Draft, PartitionImage
from ottla.cluster.in_sync import UNKNOWN_END, InSync
from ottla.cluster.metadata import ClusterMetadata
from ottla.cluster.store import StoreError
from ottla.errors import ErrorCode, OttlaError, RequestFailed, UnknownTopicId
from ottla.model.ids import BrokerId, TopicPartition

RETRY_SECONDS: Final = 1.0
REMEMBERED_MAX: Final = 1_000
"""Reasons kept."""

log = logging.getLogger(__name__)


class Dropped(msgspec.Struct, frozen=True):
    """Why a replica was wished out of a set in sync."""

    at_ms: int
    partition: TopicPartition
    replica: BrokerId
    reason: str


class InSyncChanges:
    """Carries out proposals, and looks for members that lag."""

    def __init__(self, metadata: ClusterMetadata, partitions: Partitions, lag_ms_max: int) -> None:
        self._metadata = metadata
        self._partitions = partitions
        self._check_seconds = lag_ms_max / 2000
        self._running: set[asyncio.Task[None]] = set()
        self.dropped: deque[Dropped] = deque(maxlen=REMEMBERED_MAX)
        """The last that were wished out, the latest at the end."""

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
        alive = self._metadata.image.brokers
        if any(broker not in alive for broker in members - in_sync.members):
            return
        self._explain(partition, in_sync, in_sync.members - members)
        in_sync.propose(members)
        partition.in_sync_changed()
        self._begin(self._propose(partition, members))

    def _explain(self, partition: Partition, in_sync: InSync, leaving: frozenset[BrokerId]) -> None:
        clock = partition.clock
        for replica in sorted(leaving):
            follower = in_sync.followers[replica]
            behind = f"the log ends at {partition.log.end_offset}"
            if follower.end_offset == UNKNOWN_END:
                reason = f"it has not fetched in leader epoch {partition.leader_epoch}, {behind}"
            else:
                seconds = (clock.monotonic_ms() - follower.caught_up_ms) / 1000
                reason = (
                    f"it has not had everything for {seconds:.1f} s:"
                    f" it is at offset {follower.end_offset}, {behind}"
                )
            log.warning("%s: broker %d is not in sync any more: %s", partition.id, replica, reason)
            self.dropped.append(Dropped(clock.now_ms(), partition.id, replica, reason))

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
        proposal = in_sync.proposal
        led = self._metadata.image.partition(name.topic, name.partition)
        if led is None or proposal is None or led.leader_epoch != partition.leader_epoch:
            return True  # Newer metadata is on its way and will say what holds.

        def decide(draft: Draft) -> PartitionImage:
            topic = topic_of(draft, name.topic)
            if topic.id != partition.topic_id:
                raise UnknownTopicId(partition.topic_id)
            now = topic.partitions[name.partition]
            if now.partition_epoch != proposal.partition_epoch:
                return _as_overtaken(now, members)
            return change_in_sync(draft, name.topic, name.partition, led=led, isr=members)

        try:
            changed = await self._metadata.change_as_leader(decide)
        except StoreError as error:
            log.warning("%s: a change of its replicas in sync was lost: %s", name, error)
            return False
        except OttlaError as error:
            log.info("%s: its replicas in sync stay as they are: %s", name, error)
            self._give_up(partition, in_sync)
            return True
        log.info("%s: in sync are %s", name, ", ".join(map(str, changed.isr)))
        partition.take_role(changed)
        return True

    def _give_up(self, partition: Partition, in_sync: InSync) -> None:
        """Forgets a proposal that certainly was not carried out, for what the metadata says."""
        if partition.in_sync is not in_sync:
            return
        in_sync.refused()
        image = self._metadata.image.partition(partition.id.topic, partition.id.partition)
        if image is not None and image.leader_epoch == partition.leader_epoch:
            partition.take_role(image)
        partition.in_sync_changed()

    async def _watch_lag(self) -> None:
        while True:
            await asyncio.sleep(self._check_seconds)
            for partition in self._partitions:
                partition.drop_laggards()


def _as_overtaken(now: PartitionImage, members: frozenset[BrokerId]) -> PartitionImage:
    """A proposal that was made for an older state: it has happened and its answer was lost, or
    somebody else has changed the set. Then it may name one whom the controller took out."""
    if frozenset(now.isr) == members:
        return now
    raise RequestFailed(ErrorCode.INVALID_UPDATE_VERSION, "the controller was faster")
