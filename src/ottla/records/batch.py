"""A version 2 record batch as a view over its bytes: header, checksum, in-place stamping.

What must stay true:
1. Nothing here copies or reads the records: cost is per batch.
2. The checksum covers everything from the attributes on. Base offset and leader epoch stand before
   it, so a leader stamps them without touching the checksum.
3. A RecordBatch's attributes always agree with its bytes: whatever writes to the view updates both.

Records inside a batch are record.py's matter.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from crc32c import crc32c

from ottla.errors import CorruptBatch, InvalidRecord, UnsupportedForMessageFormat
from ottla.model.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from ottla.records.compression import (
    COMPRESSION_BITS,
    DECOMPRESSED_BYTES_MAX,
    Compression,
    compression_of,
    decompress,
    is_doubtful,
    may_hold,
)
from ottla.records.record import (
    RECORD_BYTES_MIN,
    Record,
    RecordShape,
    check_records,
    decode_records,
)

MAGIC: Final = 2
HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = HEADER.size
LOG_OVERHEAD_BYTES: Final = 12
"""Base offset and length: what stands before the part the length counts."""

BASE_OFFSET_POSITION: Final = 0
LENGTH_POSITION: Final = 8
LEADER_EPOCH_POSITION: Final = 12
MAGIC_POSITION: Final = 16
CRC_POSITION: Final = 17
ATTRIBUTES_POSITION: Final = 21
LAST_OFFSET_DELTA_POSITION: Final = 23
BASE_TIMESTAMP_POSITION: Final = 27
MAX_TIMESTAMP_POSITION: Final = 35
PRODUCER_ID_POSITION: Final = 43
PRODUCER_EPOCH_POSITION: Final = 51
BASE_SEQUENCE_POSITION: Final = 53
RECORD_COUNT_POSITION: Final = 57

LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40
NO_SEQUENCE: Final = -1
SEQUENCES: Final = 2**31
"""Sequence numbers count from 0 up to this and begin again."""

_unpack_header = HEADER.unpack_from
_unpack_length = struct.Struct(">i").unpack_from
_BEFORE_MAGIC: Final = struct.Struct(">qii")
_CRC: Final = struct.Struct(">I")
_ATTRIBUTES: Final = struct.Struct(">h")
_TIMESTAMP: Final = struct.Struct(">q")


class TimestampType(IntEnum):
    """Whose clock a batch's timestamps come from."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class RecordBatch:
    """One batch of format version 2, over a view that holds it and nothing else."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "crc",
        "last_offset_delta",
        "leader_epoch",
        "magic",
        "max_timestamp",
        "producer_epoch",
        "producer_id",
        "record_count",
        "size_bytes",
        "view",
    )

    base_offset: Offset
    leader_epoch: LeaderEpoch
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    base_sequence: int
    record_count: int

    def __init__(self, view: memoryview) -> None:
        length: int
        try:
            (
                self.base_offset,
                length,
                self.leader_epoch,
                self.magic,
                self.crc,
                self.attributes,
                self.last_offset_delta,
                self.base_timestamp,
                self.max_timestamp,
                self.producer_id,
                self.producer_epoch,
                self.base_sequence,
                self.record_count,
            ) = _unpack_header(view)
        except struct.error:
            raise CorruptBatch(f"{len(view)} bytes are too few for a batch's header") from None
        self.size_bytes = length + LOG_OVERHEAD_BYTES
        self.view = view
        if self.magic != MAGIC:
            raise wrong_magic(self.magic)
        if self.size_bytes != len(view):
            raise CorruptBatch(f"a batch of {self.size_bytes} bytes in {len(view)} bytes")

    def __repr__(self) -> str:
        return (
            f"RecordBatch(base_offset={self.base_offset}, record_count={self.record_count}, "
            f"size_bytes={self.size_bytes}, attributes={self.attributes:#04x})"
        )

    @property
    def last_offset(self) -> Offset:
        return Offset(self.base_offset + self.last_offset_delta)

    @property
    def next_offset(self) -> Offset:
        return Offset(self.base_offset + self.last_offset_delta + 1)

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences begin again at 0 after 2^31 - 1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) % SEQUENCES

    @property
    def compression(self) -> Compression:
        return compression_of(self.attributes)

    @property
    def is_compressed(self) -> bool:
        return self.attributes & COMPRESSION_BITS != 0

    @property
    def timestamp_type(self) -> TimestampType:
        if self.attributes & LOG_APPEND_TIME_BIT:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_producer(self) -> bool:
        return self.producer_id >= 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """From when compaction may drop the tombstones in here; set by an earlier compaction."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    def is_intact(self) -> bool:
        """Does the checksum agree with the bytes it covers?"""
        return crc32c(self.view[ATTRIBUTES_POSITION:]) == self.crc

    def check(self) -> None:
        """Raise CorruptBatch or InvalidRecord unless a log could hold this batch."""
        if crc32c(self.view[ATTRIBUTES_POSITION:]) != self.crc:
            raise CorruptBatch(f"the checksum of the batch at offset {self.base_offset} is wrong")
        if self.last_offset_delta < 0 or not 0 <= self.record_count <= self.last_offset_delta + 1:
            raise InvalidRecord(
                f"{self.record_count} records over {self.last_offset_delta + 1} offsets"
            )

    def check_as_produced(self) -> None:
        """Raise unless a client may send this batch, as far as its header and first bytes tell."""
        if crc32c(self.view[ATTRIBUTES_POSITION:]) != self.crc:
            raise CorruptBatch(f"the checksum of a batch of {self.size_bytes} bytes is wrong")
        if self.record_count <= 0 or self.record_count != self.last_offset_delta + 1:
            raise InvalidRecord(
                f"{self.record_count} records over {self.last_offset_delta + 1} offsets"
            )
        if self.base_offset:
            raise InvalidRecord(f"a batch is sent at offset 0, not {self.base_offset}")
        attributes = self.attributes
        payload_bytes = self.size_bytes - HEADER_BYTES
        records_bytes = self.record_count * RECORD_BYTES_MIN
        if attributes & COMPRESSION_BITS:
            codec = compression_of(attributes)
            if not may_hold(codec, self.view[HEADER_BYTES:], records_bytes):
                raise InvalidRecord(
                    f"{payload_bytes} bytes are not {self.record_count} records under {codec.name}"
                )
        elif records_bytes > payload_bytes:
            raise InvalidRecord(
                f"{self.record_count} records cannot stand in {payload_bytes} bytes"
            )
        if attributes & (CONTROL_BIT | DELETE_HORIZON_BIT):
            raise InvalidRecord("a client may not write control records, nor a delete horizon")
        if self.producer_id >= 0:
            if self.base_sequence < 0 or self.producer_epoch < 0:
                raise InvalidRecord("a batch with a producer id lacks an epoch or a sequence")
        elif attributes & TRANSACTIONAL_BIT:
            raise InvalidRecord("a transactional batch lacks a producer id")

    def is_doubtful(self) -> bool:
        """Whether only its records can tell if a compressed batch is what its header says."""
        if not self.attributes & COMPRESSION_BITS:
            return False
        records_bytes = self.record_count * RECORD_BYTES_MIN
        return is_doubtful(self.compression, self.view[HEADER_BYTES:], records_bytes)

    def set_max_timestamp(self, timestamp: int) -> None:
        """Make the header say what the records do; the checksum is made anew."""
        self.max_timestamp = timestamp
        _TIMESTAMP.pack_into(self.view, MAX_TIMESTAMP_POSITION, timestamp)
        self.crc = crc32c(self.view[ATTRIBUTES_POSITION:])
        _CRC.pack_into(self.view, CRC_POSITION, self.crc)

    def assign(self, base_offset: int, leader_epoch: int) -> None:
        """Stamp the place in the log. Both fields stand outside the checksum."""
        _BEFORE_MAGIC.pack_into(
            self.view, 0, base_offset, self.size_bytes - LOG_OVERHEAD_BYTES, leader_epoch
        )
        self.base_offset = Offset(base_offset)
        self.leader_epoch = LeaderEpoch(leader_epoch)

    def set_append_time(self, append_time_ms: int) -> None:
        """Make every record's timestamp the broker's; the checksum is made anew."""
        self.attributes |= LOG_APPEND_TIME_BIT
        self.max_timestamp = append_time_ms
        _ATTRIBUTES.pack_into(self.view, ATTRIBUTES_POSITION, self.attributes)
        _TIMESTAMP.pack_into(self.view, MAX_TIMESTAMP_POSITION, append_time_ms)
        self.crc = crc32c(self.view[ATTRIBUTES_POSITION:])
        _CRC.pack_into(self.view, CRC_POSITION, self.crc)

    def payload(self, limit_bytes: int = DECOMPRESSED_BYTES_MAX) -> bytes:
        """The records' bytes, decompressed."""
        if self.size_bytes == HEADER_BYTES:  # compaction leaves batches without records
            return b""
        return decompress(self.compression, self.view[HEADER_BYTES:], limit_bytes)

    def shape(self) -> RecordShape:
        """What the header says about the records."""
        return RecordShape(
            base_offset=self.base_offset,
            base_timestamp=self.base_timestamp,
            append_time=self.max_timestamp if self.attributes & LOG_APPEND_TIME_BIT else None,
            record_count=self.record_count,
            last_offset_delta=self.last_offset_delta,
        )

    def records(self, limit_bytes: int = DECOMPRESSED_BYTES_MAX) -> Iterator[Record]:
        """Each record in order; InvalidRecord where the bytes do not bear the header out."""
        return decode_records(self.payload(limit_bytes), self.shape())

    def check_records(
        self, *, needs_keys: bool = False, limit_bytes: int = DECOMPRESSED_BYTES_MAX
    ) -> None:
        """Raise InvalidRecord unless the records bear the header out, with keys if asked."""
        check_records(self.payload(limit_bytes), self.shape(), needs_keys=needs_keys)


def split(view: memoryview, *, ignore_torn_tail: bool = False) -> list[RecordBatch]:
    """The batches that stand end to end in `view`; CorruptBatch where that is not what it holds.

    What a fetch returns may end in the middle of a batch: `ignore_torn_tail` leaves that end out.
    """
    batches: list[RecordBatch] = []
    position = 0
    end = len(view)
    while position < end:
        remaining = end - position
        if remaining >= HEADER_BYTES:
            length: int = _unpack_length(view, position + LENGTH_POSITION)[0]
            size_bytes = length + LOG_OVERHEAD_BYTES
            if size_bytes == remaining and not position:  # the usual case: one batch, no slice
                return [RecordBatch(view)]
            if HEADER_BYTES <= size_bytes <= remaining:
                batches.append(RecordBatch(view[position : position + size_bytes]))
                position += size_bytes
                continue
            if size_bytes < HEADER_BYTES:
                raise CorruptBatch(f"a batch of {size_bytes} bytes is shorter than its header")
        if ignore_torn_tail:
            break
        raise CorruptBatch(f"the last {remaining} bytes are a part of a batch")
    return batches


def magic_of(view: memoryview) -> int:
    """The format version of what `view` begins with; all formats keep it in the same place."""
    if len(view) <= MAGIC_POSITION:
        raise CorruptBatch(f"{len(view)} bytes are too few for records")
    return view[MAGIC_POSITION]


def wrong_magic(magic: int) -> CorruptBatch | UnsupportedForMessageFormat:
    """The error for records that are not of version 2."""
    if magic in (0, 1):
        return UnsupportedForMessageFormat(f"records of format {magic}, where 2 is required")
    return CorruptBatch(f"{magic} is not a version of the record format")
