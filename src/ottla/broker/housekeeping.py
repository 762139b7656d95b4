"""Work that nobody asks for: retention, checkpoints, flushes that are due, forgotten producers.

Each duty runs at its own interval on the event loop and gives way every few logs, so that no
client waits for it. Compaction has a file of its own: it is the one that takes long.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from ottla.broker.cluster_view import ClusterView
from ottla.broker.flusher import Flusher
from ottla.broker.partition import Partition
from ottla.broker.partitions import Partitions
from ottla.errors import OttlaError
from ottla.model.clock import Clock
from ottla.storage.log_directory import LogDirectory
from ottla.storage.retention import apply_retention

LOGS_PER_TURN: Final = 64
FLUSH_CHECK_MS: Final = 1_000
REMOVE_DELETED_MS: Final = 1_000
REOPEN_MS: Final = 10_000
"""How often a log that the disk failed is tried again."""

log = logging.getLogger(__name__)


class Housekeeping:
    """The broker's regular duties."""

    def __init__(
        self,
        partitions: Partitions,
        directory: LogDirectory,
        flusher: Flusher,
        view: ClusterView,
        clock: Clock,
    ) -> None:
        self._partitions = partitions
        self._directory = directory
        self._flusher = flusher
        self._view = view
        self._clock = clock
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begins all duties."""
        settings = self._view.settings
        self._every(settings.log_retention_check_interval_ms, self._apply_retention)
        self._every(settings.producer_id_expiration_check_interval_ms, self._expire_producers)
        self._every(settings.log_flush_offset_checkpoint_interval_ms, self._checkpoint)
        self._every(FLUSH_CHECK_MS, self._flush_due)
        self._every(REMOVE_DELETED_MS, self._remove_deleted)
        self._every(REOPEN_MS, self._reopen_fenced)

    async def stop(self) -> None:
        """Ends all duties."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _every(self, interval_ms: int, duty: Callable[[], Awaitable[None]]) -> None:
        async def repeat() -> None:
            while True:
                await asyncio.sleep(max(1, interval_ms) / 1000)
                try:
                    await duty()
                except (OttlaError, OSError) as error:
                    log.error("%s failed: %s", duty.__name__.strip("_"), error)

        self._tasks.append(asyncio.get_running_loop().create_task(repeat()))

    async def _for_each(self, work: Callable[[Partition], None]) -> None:
        for count, partition in enumerate(tuple(self._partitions), start=1):
            try:
                work(partition)
            except (OttlaError, OSError) as error:
                log.error("looking after %s failed: %s", partition.id, error)
            if not count % LOGS_PER_TURN:
                await asyncio.sleep(0)

    async def _apply_retention(self) -> None:
        await self._for_each(self._expire_segments)

    def _expire_segments(self, partition: Partition) -> None:
        gone = apply_retention(partition.log, self._clock.now_ms())
        if gone:
            partition.start_moved()
            log.info("%s: retention let go of %d segments", partition.id, len(gone))

    async def _expire_producers(self) -> None:
        expiration_ms = self._view.settings.producer_id_expiration_ms
        now_ms = self._clock.now_ms()

        def expire(partition: Partition) -> None:
            partition.log.producers.expire(now_ms, expiration_ms)

        await self._for_each(expire)

    async def _flush_due(self) -> None:
        now_ms = self._clock.now_ms()

        def flush(partition: Partition) -> None:
            if partition.log.needs_flush(now_ms):
                self._flusher.add(partition)

        await self._for_each(flush)

    async def _checkpoint(self) -> None:
        """Notes how far each log is safe, after making its sealed segments so.

        Without it, recovery after a crash would have to read everything since the last stop.
        """

        def flush_sealed(partition: Partition) -> None:
            if partition.log.recovery_point < partition.log.segments.active.base_offset:
                self._flusher.add(partition)

        await self._for_each(flush_sealed)
        await self._flusher.wait_idle()
        await self.write_checkpoints()

    async def write_checkpoints(self) -> None:
        """Notes where each log begins and how far it is safe; returns when that is on disk."""
        await self._flusher.run(self._directory.begin_checkpoints().run)

    async def _reopen_fenced(self) -> None:
        await self._for_each(self._reopen)

    def _reopen(self, partition: Partition) -> None:
        if partition.log.is_fenced:
            opened = self._directory.reopen_log(partition.id)
            partition.reopened(opened.log)
            log.warning("%s takes writes again", partition.id)

    async def _remove_deleted(self) -> None:
        job = self._directory.begin_removal(self._clock.now_ms())
        if job.files or job.directories:
            await self._flusher.run(job.run)
