"""One partition as this broker holds it: role, log and how far it is committed.

Does not know requests, other partitions or how news of the cluster come.

Invariants:
1. high watermark <= log end; it never goes back while this broker leads.
2. What is acknowledged with acks=all is below the high watermark. Where the topic asks for a flush
   of every message, the high watermark follows the disk, else it follows the log's end.
3. Consumers are shown nothing at or above the high watermark.
4. Only the leader epoch of the metadata changes a role: news of a lower epoch change nothing.
5. A leader whose session with the metadata store has ended accepts and acknowledges nothing. While
   it only may have ended, nothing is acknowledged that no follower in sync has fetched.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

import msgspec

from ottla.broker.commit_waits import CommitWaits
from ottla.broker.standing import Standing
from ottla.broker.watch import Watcher
from ottla.cluster.image import PartitionImage
from ottla.cluster.in_sync import InSync
from ottla.errors import (
    ErrorCode,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    RequestFailed,
    StorageFailed,
)
from ottla.model.clock import Clock
from ottla.model.ids import (
    NO_LEADER_EPOCH,
    BrokerId,
    LeaderEpoch,
    Offset,
    TopicId,
    TopicPartition,
)
from ottla.storage.log import Appended, Log
from ottla.storage.producer_state import Origin


class FlushQueue(Protocol):
    """Syncs logs to the disk soon, many at once."""

    def add(self, partition: Partition) -> None: ...

    async def sync(self, partition: Partition) -> None: ...

    def sync_now(self, partition: Partition) -> None: ...


class InSyncKeeper(Protocol):
    """Takes a leader's wish to change its set to the metadata store."""

    def change(self, partition: Partition, members: frozenset[BrokerId]) -> None: ...


class Relieving(Protocol):
    """Finds another leader for what cannot be written, or not be committed, here."""

    def ask(self, partition: Partition) -> None: ...

    def hand_over(self, partition: Partition, lagging: frozenset[BrokerId]) -> bool: ...


class Services(msgspec.Struct, frozen=True):
    """What partitions ask of the rest of the broker."""

    standing: Standing
    flushes: FlushQueue
    in_sync: InSyncKeeper
    relief: Relieving


class Partition:
    """A log, and this broker's part in keeping it."""

    __slots__ = (
        "_is_closed",
        "_leads_alone",
        "_services",
        "_uncommitted_bytes",
        "_waits",
        "_watches",
        "id",
        "in_sync",
        "is_ailing",
        "leader",
        "leader_epoch",
        "log",
        "topic_id",
    )

    def __init__(
        self, partition_id: TopicPartition, topic_id: TopicId, log: Log, services: Services
    ) -> None:
        self.id = partition_id
        self.topic_id = topic_id
        self.log = log
        self.leader: BrokerId | None = None
        self.leader_epoch: LeaderEpoch = NO_LEADER_EPOCH
        self.in_sync: InSync | None = None
        """The replicas as the leader knows them; None where this broker does not lead."""
        self.is_ailing = False
        """Whether the disk has refused it, and nothing is written until that takes something."""
        self._services = services
        self._leads_alone = False
        self._is_closed = False
        self._uncommitted_bytes = 0
        self._watches: dict[Watcher, None] = {}  # in the order they came
        self._waits = CommitWaits()

    # --- roles ---

    def take_role(self, image: PartitionImage) -> bool:
        """Leads or follows as the metadata says; True where the role or its epoch changed."""
        if image.leader_epoch < self.leader_epoch:
            return False
        is_new = image.leader_epoch > self.leader_epoch
        self.leader = image.leader if image.has_leader else None
        if image.leader == self._services.standing.broker_id:
            self._lead(image, is_new=is_new)
        elif is_new or self.in_sync is not None:
            self._follow(image.leader_epoch)
        return is_new

    def _lead(self, image: PartitionImage, *, is_new: bool) -> None:
        standing = self._services.standing
        if is_new or self.in_sync is None:
            self.is_ailing = False
            self.leader_epoch = image.leader_epoch
            if self.log.flusher.is_cut:
                self._services.flushes.sync_now(self)  # Rare: elected right after a cut.
            if self.log.epochs.latest != image.leader_epoch:
                # Noted before any write, so that followers of the next epoch find where this began.
                self.log.assign_epoch(image.leader_epoch)
            self.in_sync = InSync(
                standing.broker_id,
                image,
                epoch_start_offset=self.log.end_offset,
                now_ms=standing.clock.monotonic_ms(),
            )
        else:
            self.in_sync.confirmed(image.isr, image.partition_epoch)
            self.in_sync.reassigned(image.replicas)
        self._set_alone()
        self._advance()
        self._wake_watches()

    def _follow(self, leader_epoch: LeaderEpoch) -> None:
        self.leader_epoch = leader_epoch
        self.in_sync = None
        self._leads_alone = False
        self.fail(RequestFailed(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    def _set_alone(self) -> None:
        self._leads_alone = self.in_sync is not None and self.in_sync.is_alone

    @property
    def is_leader(self) -> bool:
        return self.in_sync is not None

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def clock(self) -> Clock:
        """The time by which this partition reckons."""
        return self._services.standing.clock

    @property
    def leads_for_certain(self) -> bool:
        """Whether this broker leads, and nobody else can by now."""
        return self.is_leader and not self._is_closed and self._services.standing.is_certain

    def check_leads(self) -> None:
        """Refuses what only the leader may answer, unless this broker certainly is it."""
        in_sync = self.in_sync
        if in_sync is None or self._is_closed or self._services.standing.may_be_deposed(in_sync):
            raise RequestFailed(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def check_leads_for_certain(self) -> None:
        """Refuses what is acknowledged before any follower has it, where another may lead."""
        if self.in_sync is not None and self.in_sync.followers and not self.leads_for_certain:
            raise RequestFailed(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Refuses a client that knows of another leader than this one."""
        self.check_leads()
        if current_leader_epoch != self.leader_epoch:
            _check_epoch(self.leader_epoch, current_leader_epoch)

    def check_replica_epoch(self, current_leader_epoch: int) -> None:
        """Refuses a reader that a replica may not answer either: it has to know its own leader."""
        if self.leader is None or self._is_closed or self._services.standing.is_fenced:
            raise RequestFailed(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        _check_epoch(self.leader_epoch, current_leader_epoch)

    # --- writing ---

    def append(self, records: memoryview, *, origin: Origin = Origin.CLIENT) -> Appended:
        """Appends records; they are committed when `wait_committed` returns."""
        self.check_leads()
        if self.is_ailing:
            raise StorageFailed(f"{self.id} gets another leader, as it cannot be written here")
        log = self.log
        try:
            appended = log.append(records, leader_epoch=self.leader_epoch, origin=origin)
        except StorageFailed:
            self._services.relief.ask(self)
            raise
        self._uncommitted_bytes += len(records)
        flush_messages = log.settings.flush_messages
        if not self._leads_alone:
            self._wake_watches()  # Followers wait for it, and it is committed through them.
            if self.in_sync is not None and len(self.in_sync.members) == 1:
                self._advance()  # Nobody who is in sync will ask for it.
        elif flush_messages > 1:
            self._commit(log.end_offset)
        if log.end_offset - log.recovery_point >= flush_messages:
            self._services.flushes.add(self)
        return appended

    def check_in_sync(self) -> None:
        """Refuses what is to be on all replicas while too few are in sync."""
        in_sync = self.in_sync
        if in_sync is None or self._leads_alone:
            return
        needed = in_sync.needed(self.log.settings.min_insync_replicas)
        if len(in_sync.members) < needed:
            raise NotEnoughReplicas(self.id, len(in_sync.members), needed)

    def check_still_in_sync(self) -> None:
        """Tells a writer that its records are committed, but on fewer replicas than was asked."""
        in_sync = self.in_sync
        least = self.log.settings.min_insync_replicas
        if in_sync is not None and len(in_sync.maximal) < in_sync.needed(least):
            raise NotEnoughReplicasAfterAppend(self.id)

    def is_committed(self, end_offset: Offset) -> bool:
        """Whether all records before `end_offset` are committed."""
        return end_offset <= self.log.high_watermark

    async def wait_committed(self, end_offset: Offset, deadline: float) -> None:
        """Returns once all records before `end_offset` are committed; raises if they cannot be,
        or are not by the loop's time `deadline`."""
        await self.committed(end_offset, deadline)

    def committed(self, end_offset: Offset, deadline: float) -> asyncio.Future[None]:
        """The wait itself, begun. Whoever appends and then waits for something else needs it: were
        this broker deposed meanwhile, others' records might be committed at the same offsets."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.in_sync is None or self._is_closed:
            future.set_exception(RequestFailed(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        elif self.is_committed(end_offset):
            future.set_result(None)
        else:
            self._waits.add(end_offset, deadline, future)
        return future

    def stood(self) -> None:
        """This broker's right to lead may have changed: what waited for it goes on, or looks."""
        self._advance()
        self._wake_watches()

    def reopened(self, log: Log) -> None:
        """The log was fenced and has been opened again; it may have lost its tail."""
        self.log = log
        self.stood()

    def start_moved(self) -> None:
        """The log begins later than it did: replicas have to hear of it."""
        self._wake_watches()

    @property
    def is_unsynced(self) -> bool:
        """Whether something must be on the disk before anybody may count on it, and is not."""
        log = self.log
        is_synced_always = log.settings.flush_messages == 1
        return log.flusher.is_cut or (is_synced_always and log.recovery_point < log.end_offset)

    async def sync(self) -> None:
        await self._services.flushes.sync(self)

    def flushed(self) -> None:
        """The log's flush finished: what it covers may be committed by it."""
        self._advance()

    def fetched_by(self, follower: BrokerId, offset: Offset) -> None:
        """A follower asked for what comes at `offset`: it has all that is before."""
        in_sync = self.in_sync
        if in_sync is None:
            return
        in_sync.fetched(follower, offset, self.log.end_offset, self.clock.monotonic_ms())
        self._advance()
        if in_sync.proposal is None and in_sync.can_join(follower, self.log.high_watermark):
            self._services.in_sync.change(self, in_sync.members | {follower})

    def drop_laggards(self) -> None:
        """Wishes those out of the set that have not had everything for too long."""
        in_sync = self.in_sync
        if in_sync is None or in_sync.proposal is not None:
            return
        lag_ms_max = self._services.standing.lag_ms_max
        lagging = in_sync.lagging(self.log.end_offset, self.clock.monotonic_ms(), lag_ms_max)
        if lagging and not self._services.relief.hand_over(self, lagging):
            self._services.in_sync.change(self, in_sync.members - lagging)

    def follow_watermarks(self, high_watermark: Offset, start_offset: Offset) -> None:
        """Takes over how far the leader has come, as far as this log has it."""
        log = self.log
        before = log.high_watermark
        log.advance_high_watermark(min(high_watermark, log.end_offset))
        if log.high_watermark > before:
            self._wake_watches()  # Consumers may read here too.
        if start_offset > log.start_offset:
            log.delete_records_before(min(start_offset, log.high_watermark))

    def in_sync_changed(self) -> None:
        """The set was confirmed, refused or proposed anew."""
        self._set_alone()
        self._advance()

    def fail(self, error: Exception) -> None:
        """Those who wait for a commit are told that it will not come, and readers look again."""
        self._waits.fail(error)
        self._wake_watches()

    def _advance(self) -> None:
        """Moves the high watermark as far as all replicas that count have come."""
        in_sync, standing = self.in_sync, self._services.standing
        if in_sync is None or standing.may_be_deposed(in_sync):
            return
        log = self.log
        if len(in_sync.members) < in_sync.needed(log.settings.min_insync_replicas):
            return
        safe_end = log.recovery_point if log.settings.flush_messages == 1 else log.end_offset
        now_ms = standing.clock.monotonic_ms()
        self._commit(in_sync.high_watermark(safe_end, now_ms, standing.lag_ms_max))

    def _commit(self, end_offset: Offset) -> None:
        if end_offset <= self.log.high_watermark:
            return
        self.log.advance_high_watermark(end_offset)
        if self._waits.queue:
            self._waits.committed(end_offset)
        size_bytes, self._uncommitted_bytes = self._uncommitted_bytes, 0
        if self._watches:
            for watch in tuple(self._watches):
                watch.added(size_bytes)

    # --- reading ---

    def readable_end(self, *, committed_only: bool) -> Offset:
        """Where a consumer's view ends."""
        return self.log.last_stable_offset if committed_only else self.log.high_watermark

    def watch(self, watch: Watcher) -> None:
        """Tells `watch` of all that becomes readable from now on."""
        self._watches[watch] = None

    def unwatch(self, watch: Watcher) -> None:
        """Tells it no more."""
        self._watches.pop(watch, None)

    def close(self) -> None:
        """Ends all waits: the partition is going away."""
        self._is_closed = True
        self.fail(RequestFailed(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    def _wake_watches(self) -> None:
        for watch in tuple(self._watches):
            watch.wake()


def _check_epoch(known: LeaderEpoch, asked: int) -> None:
    if asked in (NO_LEADER_EPOCH, known):
        return
    if asked < known:
        raise RequestFailed(ErrorCode.FENCED_LEADER_EPOCH)
    raise RequestFailed(ErrorCode.UNKNOWN_LEADER_EPOCH)
