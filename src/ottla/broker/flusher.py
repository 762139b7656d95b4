"""Syncs logs to the disk in a thread, many in one go, and tells their partitions of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Protocol, TypeVar

from ottla.broker.partition import Partition
from ottla.errors import StorageFailed
from ottla.storage.checkpoint import CheckpointJob
from ottla.storage.flush import FlushJob

T = TypeVar("T")

log = logging.getLogger(__name__)


class Points(Protocol):
    """Knows how far all logs are safe, and writes it down."""

    def begin_checkpoints(self) -> CheckpointJob: ...


class Flusher:
    """A group fsync: whatever is asked for while one round runs goes into the next."""

    def __init__(self, executor: Executor, points: Points) -> None:
        self._executor = executor
        self._points = points
        self._due: dict[Partition, None] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._round: asyncio.Task[None] | None = None

    def add(self, partition: Partition) -> None:
        """The partition's log is synced in the next round."""
        self._due[partition] = None
        if self._round is None:
            self._round = asyncio.get_running_loop().create_task(self._run())

    async def sync(self, partition: Partition) -> None:
        """Returns when all that the log has now was synced, and what was cut off it is gone for
        good; or when that could not be: then the log is fenced, or is as unsynced as before."""
        self.add(partition)
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(ended)
        await ended

    def sync_now(self, partition: Partition) -> None:
        """The same here, while the loop waits; StorageFailed where it could not be."""
        job = partition.log.begin_flush()
        job.run()
        partition.log.finish_flush(job)
        try:
            # In the thread all the same: another checkpoint may be under way there.
            self._executor.submit(self._points.begin_checkpoints().run).result()
        except OSError as error:
            raise StorageFailed(f"{partition.id}: its cut cannot be noted: {error}") from error
        partition.log.flusher.cut_is_safe(job, partition.log.segments)

    async def run(self, work: Callable[[], T]) -> T:
        """Other slow work on the disk, in line with the syncing: one thing after the other."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    async def wait_idle(self) -> None:
        """Returns when nothing is left to sync."""
        while self._round is not None:
            await asyncio.shield(self._round)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._due:
                due, self._due = self._due, {}
                waiting, self._waiting = self._waiting, []
                jobs = [found for partition in due if (found := self._begin(partition))]
                await loop.run_in_executor(self._executor, _sync_all, [job for _, job in jobs])
                for partition, job in jobs:
                    self._finish(partition, job)
                await self._note_cuts([each for each in jobs if each[1].is_after_cut])
                _wake(waiting)
        finally:
            self._round = None

    def _begin(self, partition: Partition) -> tuple[Partition, FlushJob] | None:
        """What to sync; nothing where the partition is gone or its files cannot be had."""
        if partition.is_closed:
            return None
        try:
            return partition, partition.log.begin_flush()
        except OSError as error:
            failure = partition.log.fence(f"its files cannot be opened to be synced: {error}")
            log.error("%s", failure)
            partition.fail(failure)
            return None

    async def _note_cuts(self, cut: list[tuple[Partition, FlushJob]]) -> None:
        """Writes down how far logs are safe that had been safe further than they go now."""
        if not cut:
            return
        try:
            await self.run(self._points.begin_checkpoints().run)
        except OSError as error:
            log.error("how far %d logs are safe cannot be noted: %s", len(cut), error)
            return
        for partition, job in cut:
            partition.log.flusher.cut_is_safe(job, partition.log.segments)

    def _finish(self, partition: Partition, job: FlushJob) -> None:
        try:
            partition.log.finish_flush(job)
        except StorageFailed as failure:
            log.error("%s", failure)
            partition.fail(failure)
            return
        partition.flushed()


def _wake(waiting: list[asyncio.Future[None]]) -> None:
    for ended in waiting:
        if not ended.done():
            ended.set_result(None)


def _sync_all(jobs: list[FlushJob]) -> None:
    for job in jobs:
        job.run()
