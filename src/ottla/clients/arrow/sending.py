"""A table's way to its partitions: pieces, by partition, encoded, in line behind single records.

Over the producer's core: the batches wait in the same accumulator and go through the same sender as
those of single records, so that order, sequences, transactions, retries and limits are the same.
Serializers and interceptors, which look at single records, have no part in this. The faces differ
only in how they wait.

Invariants:
1. A batch is encoded when there is room for the one before it: besides `buffer.memory`, one piece
   and one batch are in memory.
2. Nothing is handed over after an error; what was handed over is waited for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from crc32c import crc32c

from ottla.clients.arrow.outgoing import pieces_of
from ottla.clients.arrow.placing import ANYWHERE, Placement, by_partition, last_given
from ottla.clients.arrow.table_sent import TableSent, Tally
from ottla.clients.blocking.loop_thread import LoopThread
from ottla.clients.failures import TopicNotFound
from ottla.clients.producer.batch import ProducerBatch
from ottla.clients.producer.core import ProducerCore
from ottla.clients.producer.routing import Route
from ottla.errors import OttlaError, RecordTooLarge
from ottla.records import speed
from ottla.records.arrow_encode import BATCH_BYTES_DEFAULT, TableEncoding, encode_table
from ottla.records.batch import HEADER_BYTES, RECORD_COUNT_POSITION
from ottla.records.compression import Compression

if TYPE_CHECKING:
    import pyarrow

_COUNT_BYTES: Final = 4


class TableBatches:
    """One table as batches, made one at a time."""

    __slots__ = (
        "_core",
        "_encoding",
        "_is_plain",
        "_pieces",
        "_placement",
        "_record_bytes_max",
        "topic",
    )

    def __init__(
        self, core: ProducerCore, topic: str, table: Any, partition: int | None = None
    ) -> None:
        settings = core.plan.settings
        self._core = core
        self.topic = topic
        self._pieces = pieces_of(table)
        self._placement = Placement(
            topic, partition, core.plan.partitioner, settings.partitioner_ignore_keys
        )
        batch_bytes = settings.batch_size
        if not core.plan.batch_size_was_given:
            batch_bytes = min(
                BATCH_BYTES_DEFAULT, settings.max_request_size, settings.buffer_memory // 2
            )
        self._encoding = TableEncoding(
            max(batch_bytes, HEADER_BYTES + 1),
            settings.compression,
            settings.compression_level,
            has_checksums=False,
        )
        self._is_plain = settings.compression is Compression.NONE
        self._record_bytes_max = settings.max_request_size

    def next_piece(self) -> pyarrow.RecordBatch | None:
        """Another piece of the table; None at its end."""
        return next(self._pieces, None)

    def last_partition(self, piece: pyarrow.RecordBatch) -> int:
        """The largest partition a row of the piece is given."""
        first, last = last_given(piece, self._placement)
        if first < 0:
            raise TopicNotFound(self.topic, first)
        return last

    def batches(self, piece: pyarrow.RecordBatch, route: Route) -> Iterator[ProducerBatch]:
        """The piece's records as batches that carry bytes, each with its partition."""
        count = len(route.queues)
        last = self.last_partition(piece)
        if last >= count:
            raise TopicNotFound(self.topic, last)
        now_ms = time.time_ns() // 1_000_000
        for place, rows in by_partition(piece, self._placement, count):
            if not ANYWHERE <= place < count:
                raise TopicNotFound(self.topic, place)
            spares = self._core.accumulator.spares
            for data in encode_table(rows, now_ms, self._encoding, spares):
                partition = self._turn(route) if place == ANYWHERE else place
                yield self._batch(partition, data)

    def _turn(self, route: Route) -> int:
        with self._core.accumulator.lock:
            return route.choose_sticky().partition

    def _batch(self, partition: int, data: bytearray) -> ProducerBatch:
        end = RECORD_COUNT_POSITION + _COUNT_BYTES
        batch = ProducerBatch(self.topic, partition, time.monotonic())
        batch.record_count = int.from_bytes(data[RECORD_COUNT_POSITION:end], "big")
        batch.data = data
        batch.size = len(data)
        batch.has_checksum = not self._is_plain
        batch.is_of_table = self._is_plain
        if self._is_plain and speed.IS_ACCELERATED:
            # Here the bytes are still near to the processor, and the loop has enough to do.
            batch.payload_checksum = crc32c(memoryview(data)[HEADER_BYTES:])
        if batch.record_count == 1 and batch.size > self._record_bytes_max:
            raise RecordTooLarge(batch.size, self._record_bytes_max)
        return batch


def send_table(core: ProducerCore, loop: LoopThread, table: TableBatches) -> TableSent:
    """Sends a table from a thread, and waits for the broker's word."""
    tally = Tally(table.topic)
    try:
        while tally.error is None and (piece := table.next_piece()) is not None:
            last = table.last_partition(piece)
            route = core.accumulator.routes.get(table.topic)
            if route is None or last >= len(route.queues):
                route = loop.run(core.route(table.topic, last))
            for batch in table.batches(piece, route):
                _enqueue(core, route, batch)
                tally.add(batch)
                if tally.waiting is not None and tally.error is not None:
                    break
    except OttlaError as error:
        tally.stop(error)
    while (batch_waiting := tally.waiting) is not None:
        batch_waiting.wait(None)
    return tally.result()


def _enqueue(core: ProducerCore, route: Route, batch: ProducerBatch) -> None:
    deadline = time.monotonic() + core.plan.settings.max_block_ms / 1000
    while True:
        core.check_may_send()
        releases = core.accumulator.releases
        if core.accumulator.enqueue(route, batch):
            core.accumulator.wake()
            return
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise core.buffer_full()
        core.accumulator.wait_memory(left_s, releases)


async def send_table_async(core: ProducerCore, table: TableBatches) -> TableSent:
    """The same for a task."""
    tally = Tally(table.topic)
    try:
        while tally.error is None and (piece := table.next_piece()) is not None:
            route = await core.route(table.topic, table.last_partition(piece))
            for batch in table.batches(piece, route):
                core.check_may_send()
                await core.send_batches(route, [batch])
                tally.add(batch)
                if tally.waiting is not None and tally.error is not None:
                    break
    except OttlaError as error:
        tally.stop(error)
    while (batch_waiting := tally.waiting) is not None:
        await batch_waiting.wait_done()
    return tally.result()
