"""Compacts one log after another in a thread, at the speed it is allowed."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from ottla.broker.cluster_view import ClusterView
from ottla.broker.partition import Partition
from ottla.broker.partitions import Partitions
from ottla.errors import OttlaError
from ottla.model.clock import Clock
from ottla.storage.compaction import CompactionJob, begin_compaction, finish_compaction

MAP_ENTRY_BYTES: Final = 120
"""What remembering one key costs in memory."""

log = logging.getLogger(__name__)


class Compactor:
    """The broker's log cleaner."""

    def __init__(self, partitions: Partitions, view: ClusterView, clock: Clock) -> None:
        self._partitions = partitions
        self._view = view
        self._clock = clock
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="ottla-compaction")
        self._stopping = threading.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to look for work."""
        if self._view.settings.log_cleaner_enable:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Gives up the log under work, if any; what it was stays as it was."""
        self._stopping.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._executor.shutdown()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._view.settings.log_cleaner_backoff_ms / 1000)
            for partition in tuple(self._partitions):
                if partition.log.settings.is_compacted and not partition.log.is_fenced:
                    await self._compact(partition)

    async def _compact(self, partition: Partition) -> None:
        settings = self._view.settings
        entries_max = max(1, settings.log_cleaner_dedupe_buffer_size // MAP_ENTRY_BYTES)
        pause = Throttle(settings.log_cleaner_io_max_bytes_per_second, self._stopping)
        try:
            job = begin_compaction(partition.log, self._clock.now_ms(), map_entries_max=entries_max)
            if job is None:
                return
            await asyncio.get_running_loop().run_in_executor(self._executor, job.run, pause)
            self._finish(partition, job)
        except (OttlaError, OSError) as error:
            log.error("compacting %s failed: %s", partition.id, error)

    def _finish(self, partition: Partition, job: CompactionJob) -> None:
        if partition not in tuple(self._partitions.of_topic(partition.id.topic).values()):
            return  # deleted meanwhile
        stats = finish_compaction(partition.log, job)
        if stats is not None:
            log.info(
                "%s: compacted %d bytes to %d", partition.id, stats.bytes_before, stats.bytes_after
            )


class CompactionStopped(OSError):
    """The broker stops, and the compaction with it."""


class Throttle:
    """Keeps a thread's reading and writing below a number of bytes in a second."""

    def __init__(self, bytes_per_second: float, stopping: threading.Event) -> None:
        self._bytes_per_second = bytes_per_second
        self._stopping = stopping
        self._began = time.monotonic()
        self._done_bytes = 0

    def __call__(self, size_bytes: int) -> None:
        self._done_bytes += size_bytes
        due = self._began + self._done_bytes / self._bytes_per_second
        if self._stopping.wait(max(0.0, due - time.monotonic())):
            raise CompactionStopped("the broker stops")
