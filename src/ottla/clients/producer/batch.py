"""Records of one partition that travel together, from the first append to the broker's answer.

Life: open (takes records) → closed → encoded and stamped, on its way, perhaps repeatedly → done.

Invariants:
1. Only whoever holds the accumulator's lock opens or closes, and so does whoever appends, unless
   the compiled gatherer is there, whose appends need none; all else happens on the loop.
2. `is_done` is set after the outcome, and waiters look at it after they have registered: nobody
   waits for a batch that is done.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
from crc32c import crc32c

from ottla.errors import OttlaError
from ottla.records import speed
from ottla.records.batch import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    HEADER_BYTES,
    PRODUCER_ID_POSITION,
    TRANSACTIONAL_BIT,
)
from ottla.records.builder import NO_PRODUCER, BatchHeader, ProducerStamp, encode_batch, seal
from ottla.records.compression import Compression

UNKNOWN_OFFSET: Final = -1
_STAMP: Final = struct.Struct(">qhi")


class RecordMetadata(msgspec.Struct, frozen=True, gc=False):
    """Where a record was written; the offset is -1 where no broker says."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


Callback = Callable[[RecordMetadata | None, OttlaError | None], object]
"""Told once what became of a record: where it is, or why it is not."""


def _append_locked(
    lock: threading.Lock, append: Callable[..., int], timestamp: int, key: Any, value: Any
) -> int:
    with lock:
        return append(timestamp, key, value)


class ProducerBatch:
    """One batch on its way to one partition."""

    __slots__ = (
        "add",
        "append_time_ms",
        "asked",
        "attempts",
        "base_offset",
        "base_sequence",
        "callbacks",
        "children",
        "created",
        "data",
        "error",
        "event_waiters",
        "future_waiters",
        "has_checksum",
        "is_closed",
        "is_done",
        "is_in_doubt",
        "is_of_table",
        "number",
        "order",
        "order_step",
        "parent",
        "partition",
        "payload_checksum",
        "record_count",
        "records",
        "reserved",
        "size",
        "spare",
        "stamp",
        "timestamps",
        "topic",
    )

    def __init__(self, topic: str, partition: int, created: float) -> None:
        self.topic = topic
        self.partition = partition
        self.created = created
        self.timestamps: list[int] = []
        self.callbacks: list[tuple[int, Callback]] = []
        self.asked: set[int] = set()
        """Records whose failure somebody has heard of, or waits to hear of."""
        self.size = HEADER_BYTES
        """In bytes, about, once it is closed."""
        self.reserved = 0
        self.record_count = 0
        self.records: speed.encoding.RecordGatherer | None = None
        self.is_closed = False
        self.data: bytearray | None = None
        self.has_checksum = True
        """Whether the bytes, once there are some, have theirs."""
        self.payload_checksum: int | None = None
        """That of the bytes behind the header, where somebody has made it already."""
        self.is_of_table = False
        self.spare: bytearray | None = None
        """What the bytes of a table's batch stood in, once it is done."""
        self.stamp = NO_PRODUCER
        self.base_sequence = -1
        self.number = 0
        """Counts the batches of its partition, once it is sent."""
        self.order = 0.0
        """Its place among the batches of its partition, once it is sent."""
        self.order_step = 1.0
        self.parent: ProducerBatch | None = None
        self.attempts = 0
        self.is_in_doubt = False
        """Some attempt ended without a word from the broker: it may be in the log."""
        self.is_done = False
        self.error: OttlaError | None = None
        self.base_offset = UNKNOWN_OFFSET
        self.append_time_ms = -1
        self.children: list[tuple[int, ProducerBatch]] = []
        """Where it was too large for the broker: its parts, by the index of their first record."""
        self.event_waiters: list[threading.Event] = []
        self.future_waiters: list[asyncio.Future[None]] = []

    # --- taking records

    def open(self, room: int, lock: threading.Lock) -> None:
        """Takes records as long as there is room: those who hold the lock by `records.append`, all
        others by `add`. Both take a timestamp, key and value, and give the record's index, or -1
        where it has no place here.
        """
        records = speed.encoding.RecordGatherer(HEADER_BYTES, room)
        self.records = records
        self.timestamps = records.timestamps()
        self.add: Callable[[int, Any, Any], int] = records.append
        if not speed.IS_ACCELERATED:
            self.add = partial(_append_locked, lock, records.append)

    def close(self) -> None:
        """Takes no more."""
        assert self.records is not None
        self.records.close()
        self.record_count = self.records.count()
        self.size = self.records.size()
        self.is_closed = True

    # --- on its way

    def encode(
        self, compression: Compression, level: int | None, stamp: ProducerStamp = NO_PRODUCER
    ) -> None:
        """Makes the bytes; the records are let go, save the timestamps that metadata tells."""
        records, self.records = self.records, None
        assert records is not None
        header = BatchHeader(
            record_count=self.record_count,
            last_offset_delta=self.record_count - 1,
            base_timestamp=self.timestamps[0],
            max_timestamp=records.max_timestamp(),
            attributes=TRANSACTIONAL_BIT if stamp.is_transactional else 0,
            producer_id=stamp.producer_id,
            producer_epoch=stamp.producer_epoch,
            base_sequence=stamp.base_sequence,
        )
        data = records.payload()
        if compression is Compression.NONE:
            seal(data, header, compression)
        else:
            data = encode_batch(header, memoryview(data)[HEADER_BYTES:], compression, level)
        self.data = data
        self.stamp = stamp

    def stamp_with(self, stamp: ProducerStamp) -> None:
        """Writes who sends it and its sequence into the bytes, and their checksum."""
        assert self.data is not None
        self.stamp = stamp
        self.has_checksum = True
        data = self.data
        if stamp.is_transactional:
            data[ATTRIBUTES_POSITION + 1] |= TRANSACTIONAL_BIT
        _STAMP.pack_into(
            data,
            PRODUCER_ID_POSITION,
            stamp.producer_id,
            stamp.producer_epoch,
            stamp.base_sequence,
        )
        data[CRC_POSITION:ATTRIBUTES_POSITION] = self._checksum(data).to_bytes(4, "big")

    def _checksum(self, data: bytearray) -> int:
        covered = memoryview(data)[ATTRIBUTES_POSITION:]
        if self.payload_checksum is None:
            return crc32c(covered)
        head = crc32c(covered[: HEADER_BYTES - ATTRIBUTES_POSITION])
        return speed.encoding.joined_checksum(head, self.payload_checksum, len(data) - HEADER_BYTES)

    # --- its end

    def succeed(self, base_offset: int, append_time_ms: int = -1) -> None:
        """The broker has it."""
        self.base_offset = base_offset
        self.append_time_ms = append_time_ms
        self._finish()

    def fail(self, error: OttlaError) -> None:
        """It is given up."""
        self.error = error
        self._finish()

    def _finish(self) -> None:
        self.spare = self.data if self.is_of_table else None
        self.data = None
        self.is_done = True
        for event in self.event_waiters:
            event.set()
        for future in self.future_waiters:
            if not future.done():
                future.set_result(None)
        for index, callback in self.callbacks:
            if self.error is not None:
                if getattr(callback, "is_for_user", True):
                    self.asked.add(index)
                callback(None, self.error)
            else:
                callback(self.metadata(index), None)
        self.callbacks = []

    def metadata(self, index: int) -> RecordMetadata:
        """Where its record number `index` is; raises why it is nowhere."""
        for start, child in reversed(self.children):
            if index >= start:
                return child.metadata(index - start)
        if self.error is not None:
            raise self.error
        offset = self.base_offset
        return RecordMetadata(
            self.topic,
            self.partition,
            offset + index if offset >= 0 else UNKNOWN_OFFSET,
            self.append_time_ms if self.append_time_ms >= 0 else self.timestamps[index],
        )

    def unheard_count(self) -> int:
        """How many of its records nobody asked for. A table's are told by whoever sent it."""
        batch, start = self, 0
        while batch.parent is not None:
            start += next(at for at, part in batch.parent.children if part is batch)
            batch = batch.parent
        if batch.is_of_table:
            return 0
        end = start + self.record_count
        return self.record_count - sum(
            1
            for index in (batch.asked | {start + own for own in self.asked})
            if start <= index < end
        )

    # --- waiting for it

    def wait(self, timeout_s: float | None) -> bool:
        """Blocks this thread until it is done; False if that takes too long."""
        if self.is_done:
            return True
        event = threading.Event()
        self.event_waiters.append(event)
        return self.is_done or event.wait(timeout_s)

    async def wait_done(self) -> None:
        """Waits on the loop until it is done."""
        if not self.is_done:
            future = asyncio.get_running_loop().create_future()
            self.future_waiters.append(future)
            await future
