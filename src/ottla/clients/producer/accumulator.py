"""Where records wait for their batch to be full or old enough, within a limit of memory.

Records come from any thread; the sender takes batches away on the loop. The lock is held for the
length of an append or a handful of list operations, and never while anything waits. Where appends
are compiled, records go past it into a batch that is open and has room (see core.py).

Invariants:
1. `used_bytes` is the sum of what unfinished batches have reserved, and at most `buffer_memory`,
   save for one record larger than all of it.
2. A batch is in `unfinished` from its first record to its end.
3. The sender is woken when a batch begins and when one is closed: never once a record.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from ottla.clients.producer.batch import Callback, ProducerBatch
from ottla.clients.producer.routing import PartitionQueue, Route
from ottla.clients.producer.settings import ProducerSettings
from ottla.errors import RecordTooLarge
from ottla.records import speed
from ottla.records.batch import HEADER_BYTES

RESERVE_BYTES: Final = 16 * 1024
"""What a batch takes from the limit at first, if the one before it was small; then it doubles."""
RECORD_OVERHEAD_BYTES: Final = 11
"""Lengths and deltas of a record on the wire, about."""
OBJECT_BYTES: Final = 64
"""What a record that is not encoded when it comes takes besides its bytes, about."""
AHEAD_BYTES: Final = 5_000_000
"""About what waits of a partition's ready-made batches: as much as can be on its way. Whoever makes
them faster would only fill memory, and send them from there when the processor has lost them.
"""
NO_HEADERS: Final = b"\0"

Slot = tuple[ProducerBatch, int]
"""A batch, and the index of the record in it."""


class Accumulator:
    """The batches of all partitions that are not sent yet."""

    __slots__ = (
        "_batch_bytes",
        "_limit_bytes",
        "_linger_s",
        "_memory",
        "_memory_waiters",
        "_record_bytes_max",
        "_wake",
        "is_short",
        "is_woken",
        "lingering",
        "lock",
        "ready",
        "releases",
        "routes",
        "spares",
        "unfinished",
        "used_bytes",
    )

    def __init__(self, settings: ProducerSettings, wake: Callable[[], None]) -> None:
        self._batch_bytes = max(settings.batch_size, HEADER_BYTES + 1)
        self._limit_bytes = settings.buffer_memory
        self._record_bytes_max = settings.max_request_size
        self._linger_s = settings.linger_ms / 1000
        self._wake = wake
        self.lock = threading.Lock()
        self._memory = threading.Condition(self.lock)
        self._memory_waiters: list[asyncio.Future[None]] = []
        self.routes: dict[str, Route] = {}
        self.lingering: deque[tuple[ProducerBatch, PartitionQueue]] = deque()
        """Open batches by age."""
        self.ready: dict[PartitionQueue, Route] = {}
        """Partitions with something to send, in the order in which they got it."""
        self.unfinished: set[ProducerBatch] = set()
        self.used_bytes = 0
        self.spares: list[bytearray] = []
        """Memory of tables' batches that are done, for the next ones."""
        self.releases = 0
        """How often memory was given back."""
        self.is_woken = False
        self.is_short = False
        """Somebody waits for memory: batches are sent as they are, and linger no longer."""

    # --- from any thread

    def append(
        self,
        route: Route,
        queue: PartitionQueue | None,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        *,
        headers: bytes = NO_HEADERS,
        callback: Callback | None = None,
    ) -> Slot | None:
        """Adds a record; without a queue to the partition whose turn it is. None: no memory."""
        with self.lock:
            target = route.turn if queue is None else queue
            batch = target.open
            index = -1
            if batch is not None and batch.records is not None:
                index = batch.records.append(timestamp_ms, key, value, headers)
            if batch is None or index < 0:
                size = RECORD_OVERHEAD_BYTES + len(key or b"") + len(value or b"") + len(headers)
                batch = self._make_room(route, target, size, moves_on=queue is None)
                if batch is None or batch.records is None:
                    return None
                index = batch.records.append(timestamp_ms, key, value, headers)
                assert index >= 0, "room was made for it"
            if callback is not None:
                batch.callbacks.append((index, callback))
        return batch, index

    def add_told(
        self, batch: ProducerBatch, timestamp_ms: int, key: Any, value: Any, callback: Callback
    ) -> int:
        """As the batch's `add`, for a record that somebody wants to hear of."""
        with self.lock:
            records = batch.records
            index = -1 if records is None else records.append(timestamp_ms, key, value)
            if index >= 0:
                batch.callbacks.append((index, callback))
        return index

    def _make_room(
        self, route: Route, queue: PartitionQueue, size: int, *, moves_on: bool
    ) -> ProducerBatch | None:
        """A batch with room for `size` bytes: the open one grown, or a new one."""
        batch = queue.open
        if batch is not None:
            assert batch.records is not None
            wanted = batch.records.size() + size
            if wanted <= self._batch_bytes:
                if not self._reserve(batch, wanted):
                    return None
                batch.records.grow(max(wanted, min(batch.reserved, self._batch_bytes)))
                return batch
            self._close(queue, route)
            if moves_on:
                queue = route.choose_sticky()
                if queue.open is not None:
                    return self._make_room(route, queue, size, moves_on=False)
        if size > self._record_bytes_max:
            raise RecordTooLarge(size, self._record_bytes_max)
        batch = ProducerBatch(route.topic, queue.partition, time.monotonic())
        wanted = HEADER_BYTES + size
        if not self._reserve(batch, wanted, queue.last_bytes):
            return None
        batch.open(max(wanted, min(batch.reserved, self._batch_bytes)), self.lock)
        queue.open = batch
        self.unfinished.add(batch)
        self.lingering.append((batch, queue))
        if self._linger_s == 0:
            self.ready[queue] = route
        self.wake()
        return batch

    def _reserve(self, batch: ProducerBatch, wanted: int, expected: int = 0) -> bool:
        """Takes memory for a batch of `wanted` bytes at least; False where there is not so much."""
        if not speed.IS_ACCELERATED:
            wanted += OBJECT_BYTES * len(batch.timestamps)
        least = wanted - batch.reserved
        most = max(wanted, self._batch_bytes) - batch.reserved
        step = min(max(RESERVE_BYTES, batch.reserved, least, expected), most)
        used = self.used_bytes
        if used + step > self._limit_bytes:
            step = least
        if used + step > self._limit_bytes and used > 0:
            self.is_short = True
            self.wake()
            return False
        self.used_bytes = used + step
        batch.reserved += step
        return True

    def wake(self) -> None:
        """Lets the sender look, once for however many reasons."""
        if not self.is_woken:
            self.is_woken = True
            self._wake()

    def wait_memory(self, timeout_s: float, releases: int) -> None:
        """Blocks this thread until memory was given back more often than `releases` times, or for
        so long. The count is read before the append that found no memory: no release is missed.
        """
        with self._memory:
            self._memory.wait_for(lambda: self.releases != releases, timeout_s)

    # --- on the loop

    async def wait_memory_async(self, timeout_s: float) -> None:
        """The same for a task."""
        future = asyncio.get_running_loop().create_future()
        self._memory_waiters.append(future)
        try:
            async with asyncio.timeout(timeout_s):
                await future
        except TimeoutError:
            pass

    def _close(self, queue: PartitionQueue, route: Route) -> None:
        batch = queue.open
        if batch is None:
            return
        batch.close()
        queue.last_bytes = batch.size
        queue.open = None
        queue.pending.append(batch)
        self.ready[queue] = route

    def close_aged(self, now: float, *, is_flushing: bool) -> float | None:
        """Closes batches that have waited long enough; returns when the next one will have."""
        lingering = self.lingering
        with self.lock:
            is_flushing |= self.is_short
            self.is_short = False
            while lingering:
                batch, queue = lingering[0]
                due = batch.created + self._linger_s
                if not batch.is_closed:
                    if not is_flushing and due > now:
                        return due
                    self._close(queue, self.routes[batch.topic])
                lingering.popleft()
        return None

    def enqueue(self, route: Route, batch: ProducerBatch) -> bool:
        """Puts a ready-made batch in line behind all records of its partition so far.

        False where there is no memory, or where enough waits already: try again after a release.
        """
        assert batch.data is not None
        queue = route.queues[batch.partition]
        with self.lock:
            size = len(batch.data)
            if self.used_bytes + size > self._limit_bytes and self.used_bytes > 0:
                return False
            if len(queue.pending) * size > AHEAD_BYTES:
                return False
            self.used_bytes += size
            batch.reserved = batch.size = size
            batch.is_closed = True
            self._close(queue, route)
            queue.pending.append(batch)
            self.unfinished.add(batch)
            self.ready[queue] = route
        return True

    def take(self, queue: PartitionQueue) -> ProducerBatch | None:
        """The partition's next closed batch."""
        with self.lock:
            return queue.pending.popleft() if queue.pending else None

    def forget(self, queue: PartitionQueue) -> None:
        """The partition has nothing to send, unless a thread has put something there just now."""
        with self.lock:
            if not queue.pending:
                self.ready.pop(queue, None)

    def _keep_spare(self, batch: ProducerBatch) -> None:
        """Memory that is used again counts as little as none, but never beyond the limit."""
        spare, batch.spare = batch.spare, None
        if spare is not None:
            kept = sum(map(len, self.spares)) + len(spare)
            if self.used_bytes + kept <= self._limit_bytes:
                self.spares.append(spare)

    def release(self, batch: ProducerBatch) -> None:
        """The batch is done: its memory is free for others."""
        with self._memory:
            self.unfinished.discard(batch)
            self.used_bytes -= batch.reserved
            batch.reserved = 0
            self._keep_spare(batch)
            self.releases += 1
            self._memory.notify_all()
        waiters, self._memory_waiters = self._memory_waiters, []
        for future in waiters:
            if not future.done():
                future.set_result(None)
