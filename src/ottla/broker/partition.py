"""One partition as this broker holds it: role, log and how far it is committed.

Does not know requests or other partitions.

Invariants:
1. high watermark <= log end; it never goes back.
2. What is acknowledged with acks=all is below the high watermark. Where the topic asks for a flush
   of every message, the high watermark follows the disk, else it follows the log's end.
3. Consumers are shown nothing at or above the high watermark.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from ottla.broker.watch import DataWatch
from ottla.errors import ErrorCode, RequestFailed, TimedOut
from ottla.model.file_region import FileRegion
from ottla.model.ids import NO_LEADER_EPOCH, LeaderEpoch, Offset, TopicId, TopicPartition
from ottla.storage.log import Appended, Log
from ottla.storage.producer_state import Origin


class FlushQueue(Protocol):
    """Syncs logs to the disk soon, many at once."""

    def add(self, partition: Partition) -> None: ...


class Partition:
    """A log this broker leads."""

    __slots__ = (
        "_flushes",
        "_is_closed",
        "_uncommitted_bytes",
        "_waiters",
        "_watches",
        "id",
        "leader_epoch",
        "log",
        "topic_id",
    )

    def __init__(
        self,
        partition_id: TopicPartition,
        topic_id: TopicId,
        log: Log,
        leader_epoch: LeaderEpoch,
        flushes: FlushQueue,
    ) -> None:
        self.id = partition_id
        self.topic_id = topic_id
        self.log = log
        self.leader_epoch = leader_epoch
        self._flushes = flushes
        self._is_closed = False
        self._uncommitted_bytes = 0
        self._watches: set[DataWatch] = set()
        self._waiters: deque[tuple[Offset, asyncio.Future[None]]] = deque()

    # --- writing ---

    def append(self, records: memoryview, *, origin: Origin = Origin.CLIENT) -> Appended:
        """Appends records; they are committed when `wait_committed` returns."""
        log = self.log
        appended = log.append(records, leader_epoch=self.leader_epoch, origin=origin)
        self._uncommitted_bytes += len(records)
        settings = log.settings
        if settings.flush_messages == 1:
            self._flushes.add(self)
        else:
            self._commit(log.end_offset)
            if log.end_offset - log.recovery_point >= settings.flush_messages:
                self._flushes.add(self)
        return appended

    def is_committed(self, end_offset: Offset) -> bool:
        """Whether all records before `end_offset` are committed."""
        return end_offset <= self.log.high_watermark

    def check_in_sync(self) -> None:
        """Refuses what is to be on all replicas while too few are in sync."""
        needed = self.log.settings.min_insync_replicas
        if needed > 1:
            raise RequestFailed(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.id} has one replica in sync; min.insync.replicas asks for {needed}",
            )

    async def wait_committed(self, end_offset: Offset, deadline: float) -> None:
        """Returns once all records before `end_offset` are committed; raises if they cannot be,
        or are not by the loop's time `deadline`."""
        if self.is_committed(end_offset):
            return
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiters.append((end_offset, future))
        timer = loop.call_at(deadline, _time_out, future)
        try:
            await future
        finally:
            timer.cancel()

    def reopened(self, log: Log) -> None:
        """The log was fenced and has been opened again; it may have lost its tail."""
        self.log = log
        self._commit(log.end_offset)

    def flushed(self) -> None:
        """The log's flush finished: what it covers is committed."""
        self._commit(self.log.recovery_point)

    def fail(self, error: Exception) -> None:
        """The disk refused: those who wait for the commit are told, and readers look again."""
        while self._waiters:
            _, future = self._waiters.popleft()
            if not future.done():
                future.set_exception(error)
        self._wake_watches()

    def _commit(self, end_offset: Offset) -> None:
        if end_offset <= self.log.high_watermark:
            return
        self.log.advance_high_watermark(end_offset)
        waiters = self._waiters
        while waiters and waiters[0][0] <= end_offset:
            _, future = waiters.popleft()
            if not future.done():
                future.set_result(None)
        size_bytes, self._uncommitted_bytes = self._uncommitted_bytes, 0
        if self._watches:
            for watch in tuple(self._watches):
                watch.added(size_bytes)

    # --- reading ---

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Refuses a client that knows of another leader than this one."""
        if self._is_closed:
            raise RequestFailed(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if current_leader_epoch == NO_LEADER_EPOCH or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise RequestFailed(ErrorCode.FENCED_LEADER_EPOCH)
        raise RequestFailed(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def readable_end(self, *, committed_only: bool) -> Offset:
        """Where a consumer's view ends."""
        return self.log.last_stable_offset if committed_only else self.log.high_watermark

    def read(
        self, offset: Offset, bytes_max: int, end: Offset, *, at_least_one: bool
    ) -> FileRegion | None:
        """The batches from `offset` on that lie before `end`, as a run of a file."""
        return self.log.read(offset, bytes_max=bytes_max, end=end, at_least_one=at_least_one)

    def watch(self, watch: DataWatch) -> None:
        """Tells `watch` of all that becomes readable from now on."""
        self._watches.add(watch)

    def unwatch(self, watch: DataWatch) -> None:
        """Tells it no more."""
        self._watches.discard(watch)

    def close(self) -> None:
        """Ends all waits: the partition is going away."""
        self._is_closed = True
        self.fail(RequestFailed(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    def _wake_watches(self) -> None:
        for watch in tuple(self._watches):
            watch.wake()


def _time_out(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_exception(TimedOut("the records were not committed in time"))
