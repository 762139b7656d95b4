"""Takes leaders' wishes to change their sets in sync to the metadata store, many at once.

Nobody is wished in whom the cluster does not count among the living: the controller would take it
out again at once. Why somebody was wished out is logged, and kept while it is out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, Final

import msgspec

from ottla.broker.absences import Absence, Absences
from ottla.broker.partition import Partition
from ottla.broker.partitions import Partitions
from ottla.broker.standing import Standing
from ottla.cluster.changes import in_sync_all, in_sync_as_wished, topic_of
from ottla.cluster.image import ClusterImage, Draft, PartitionImage, TopicImage
from ottla.cluster.in_sync import InSync
from ottla.cluster.metadata import ClusterMetadata
from ottla.cluster.store import StoreError
from ottla.errors import ErrorCode, OttlaError, RequestFailed, UnknownTopicId
from ottla.model.ids import BrokerId, TopicPartition

RETRY_SECONDS: Final = 1.0
AT_ONCE_MAX: Final = 1_000
"""Sets changed by one multi, which has a limit in bytes."""

log = logging.getLogger(__name__)


class _Wish(msgspec.Struct, frozen=True):
    """A set that a leader wishes for, in one of its epochs."""

    partition: Partition
    in_sync: InSync
    members: frozenset[BrokerId]

    @property
    def stands(self) -> bool:
        """Whether nothing was heard since that settles it."""
        return self.partition.in_sync is self.in_sync and self.in_sync.proposal is not None


class InSyncChanges:
    """Carries out proposals, and looks for members that lag."""

    def __init__(
        self, metadata: ClusterMetadata, partitions: Partitions, standing: Standing
    ) -> None:
        self._metadata = metadata
        self._partitions = partitions
        self._check_seconds = standing.lag_ms_max / 2000
        self._running: set[asyncio.Task[None]] = set()
        self._pending: list[_Wish] = []
        self._worker: asyncio.Task[None] | None = None
        self._alive: frozenset[BrokerId] = frozenset()
        self.absences = Absences(standing, metadata.image)

    def start(self) -> None:
        """Begins to look for members that lag, and for brokers that die."""
        self._alive = frozenset(self._metadata.image.brokers)
        self._metadata.observers += [self.absences.told, self._look_for_the_dead]
        self.absences.told(self._metadata.image)
        self._begin(self._watch_lag())

    async def stop(self) -> None:
        """Ends what runs; a proposal under way is answered by the metadata later."""
        for observer in (self.absences.told, self._look_for_the_dead):
            if observer in self._metadata.observers:
                self._metadata.observers.remove(observer)
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
        for replica in sorted(in_sync.members - members):
            reason = _reason(self.absences.wished_out(partition, replica))
            log.warning("%s: broker %d is not in sync any more: %s", partition.id, replica, reason)
        in_sync.propose(members)
        partition.in_sync_changed()
        self._pending.append(_Wish(partition, in_sync, members))
        if self._worker is None or self._worker.done():
            self._worker = self._begin(self._work())

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _work(self) -> None:
        """Carries out what is pending. What comes meanwhile is carried out together, so that a
        broker that comes back is taken in by few multis, however many partitions it holds."""
        while self._pending:
            some, self._pending = self._pending[:AT_ONCE_MAX], self._pending[AT_ONCE_MAX:]
            standing = [wish for wish in some if wish.stands]
            try:
                await self._carry_out(standing)
            except StoreError as error:
                # Wishes whose answer was lost stand, and are made again until the metadata tells.
                log.warning("a change of replicas in sync was lost: %s", error)
                self._pending = standing + self._pending
                await asyncio.sleep(RETRY_SECONDS)

    async def _carry_out(self, wishes: Sequence[_Wish]) -> None:
        leds = [self._led(wish) for wish in wishes]
        # Those without one: newer metadata is on its way and will say what holds.
        known = [(wish, led) for wish, led in zip(wishes, leds, strict=True) if led is not None]
        if not known:
            return
        outcomes = await self._metadata.change_as_leader(lambda draft: _decide(draft, known))
        for (wish, _), outcome in zip(known, outcomes, strict=True):
            partition = wish.partition
            if isinstance(outcome, OttlaError):
                log.info("%s: its replicas in sync stay as they are: %s", partition.id, outcome)
                self._give_up(partition, wish.in_sync)
            else:
                log.info("%s: in sync are %s", partition.id, ", ".join(map(str, outcome.isr)))
                partition.take_role(outcome)

    def _led(self, wish: _Wish) -> PartitionImage | None:
        """The state this broker leads in, as the metadata has it."""
        name = wish.partition.id
        led = self._metadata.image.partition(name.topic, name.partition)
        return led if led is not None and led.leader_epoch == wish.partition.leader_epoch else None

    def _give_up(self, partition: Partition, in_sync: InSync) -> None:
        """Forgets a proposal that certainly was not carried out, for what the metadata says."""
        if partition.in_sync is not in_sync:
            return
        in_sync.refused()
        image = self._metadata.image.partition(partition.id.topic, partition.id.partition)
        for replica in image.isr if image is not None else ():
            self.absences.stays(partition, replica)
        if image is not None and image.leader_epoch == partition.leader_epoch:
            partition.take_role(image)
        partition.in_sync_changed()

    def _look_for_the_dead(self, image: ClusterImage) -> None:
        """No commit waits for one that kept up until it died, and is in no set."""
        before, self._alive = self._alive, frozenset(image.brokers)
        if dead := before - self._alive:
            for partition in self._partitions:
                if partition.in_sync is not None:
                    partition.in_sync.gone(dead)
                    partition.in_sync_changed()

    async def _watch_lag(self) -> None:
        loop, was_late = asyncio.get_running_loop(), False
        while True:
            due = loop.time() + self._check_seconds
            await asyncio.sleep(self._check_seconds)
            # Whoever was stopped itself has heard nobody, and finds what they asked in a moment.
            was_late = not was_late and loop.time() > due + self._check_seconds
            if was_late:
                continue
            for partition in self._partitions:
                partition.drop_laggards()


def _reason(absence: Absence) -> str:
    lacking = f"{absence.lag_records} records" if absence.lag_records >= 0 else "all of this epoch"
    return (
        f"it has not had everything for {absence.lag_ms / 1000:.1f} s, has not asked for"
        f" {absence.silent_ms / 1000:.1f} s, and lacks {lacking}"
    )


def _decide(
    draft: Draft, wishes: Sequence[tuple[_Wish, PartitionImage]]
) -> list[PartitionImage | OttlaError]:
    """For each wish the state as it will be, or why it cannot be."""
    sets: dict[str, dict[int, tuple[BrokerId, ...]]] = {}
    refused: dict[TopicPartition, OttlaError] = {}
    for wish, led in wishes:
        name = wish.partition.id
        try:
            members = _checked(topic_of(draft, name.topic), wish, led)
        except OttlaError as error:
            refused[name] = error
            continue
        if members is not None:
            sets.setdefault(name.topic, {})[name.partition] = members
    for topic, changed in sets.items():
        in_sync_all(draft, topic, changed, has_recovered=True)
    names = [wish.partition.id for wish, _ in wishes]
    return [
        refused[name] if name in refused else draft.topics[name.topic].partitions[name.partition]
        for name in names
    ]


def _checked(topic: TopicImage, wish: _Wish, led: PartitionImage) -> tuple[BrokerId, ...] | None:
    """The set to write; None where it is that already.

    A wish that was made for an older state has happened and its answer was lost, or somebody else
    has changed the set. Then it may name one whom the controller took out.
    """
    partition, proposal = wish.partition, wish.in_sync.proposal
    if topic.id != partition.topic_id:
        raise UnknownTopicId(partition.topic_id)
    members = in_sync_as_wished(topic, partition.id.partition, led, wish.members)
    now = topic.partitions[partition.id.partition]
    if proposal is not None and now.partition_epoch == proposal.partition_epoch:
        return members
    if frozenset(now.isr) == wish.members:
        return None
    raise RequestFailed(ErrorCode.INVALID_UPDATE_VERSION, "the controller was faster")
