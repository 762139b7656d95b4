"""Makes version 2 batches: from records, or from a header's fields and a payload.

`write_header` is the one place that lays out a header. What is built is a bytearray, because the
log stamps offset and leader epoch into it in place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from crc32c import crc32c

from ottla.model.ids import NO_LEADER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP
from ottla.records.batch import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    RecordBatch,
)
from ottla.records.compression import COMPRESSION_BITS, Compression, compress
from ottla.records.lz4_header import Data
from ottla.records.record import Headers, Record, encode_record, with_length


class ProducerStamp(msgspec.Struct, frozen=True):
    """Who writes a batch, and the sequence of its first record."""

    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = -1
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False


NO_PRODUCER: Final = ProducerStamp()


class BatchHeader(msgspec.Struct, frozen=True):
    """The fields of a batch that do not follow from its payload."""

    record_count: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    base_offset: int = 0
    leader_epoch: int = NO_LEADER_EPOCH
    attributes: int = 0
    """Everything but the codec, which is the compression's to set."""
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = -1
    base_sequence: int = NO_SEQUENCE


def header_of(batch: RecordBatch) -> BatchHeader:
    """The fields of an existing batch, to make a changed one from."""
    return BatchHeader(
        record_count=batch.record_count,
        last_offset_delta=batch.last_offset_delta,
        base_timestamp=batch.base_timestamp,
        max_timestamp=batch.max_timestamp,
        base_offset=batch.base_offset,
        leader_epoch=batch.leader_epoch,
        attributes=batch.attributes,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
    )


def encode_batch(
    header: BatchHeader,
    payload: Data,
    compression: Compression = Compression.NONE,
    level: int | None = None,
) -> bytearray:
    """A whole batch around the records in `payload`, which it compresses."""
    stored = compress(compression, payload, level)
    batch = bytearray(HEADER_BYTES + len(stored))
    batch[HEADER_BYTES:] = stored
    seal(batch, header, compression)
    return batch


def seal(batch: bytearray, header: BatchHeader, compression: Compression) -> None:
    """Write the header of a batch whose payload, so compressed, stands where it belongs."""
    write_header(batch, header, compression)
    checksum = crc32c(memoryview(batch)[ATTRIBUTES_POSITION:])
    batch[CRC_POSITION:ATTRIBUTES_POSITION] = checksum.to_bytes(4, "big")


def write_header(batch: bytearray, header: BatchHeader, compression: Compression) -> None:
    """The same without a checksum, for whoever changes the header once more and then makes it."""
    HEADER.pack_into(
        batch,
        0,
        header.base_offset,
        len(batch) - LOG_OVERHEAD_BYTES,
        header.leader_epoch,
        MAGIC,
        0,
        header.attributes & ~COMPRESSION_BITS | compression,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    )


class BatchBuilder:
    """Takes records one by one, and is asked in between how large the batch has become."""

    __slots__ = ("_base_timestamp", "_max_timestamp", "_parts", "record_count", "size_bytes")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._base_timestamp = NO_TIMESTAMP
        self._max_timestamp = NO_TIMESTAMP
        self.record_count = 0
        self.size_bytes = HEADER_BYTES
        """What the batch would take now, uncompressed."""

    @property
    def max_timestamp(self) -> int:
        return self._max_timestamp

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
    ) -> int:
        """Add a record; returns its distance from the batch's first."""
        offset_delta = self.record_count
        if offset_delta == 0:
            self._base_timestamp = self._max_timestamp = timestamp
        elif timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
        record = with_length(
            encode_record(timestamp - self._base_timestamp, offset_delta, key, value, headers)
        )
        self._parts.append(record)
        self.size_bytes += len(record)
        self.record_count = offset_delta + 1
        return offset_delta

    def build(
        self,
        *,
        base_offset: int = 0,
        compression: Compression = Compression.NONE,
        level: int | None = None,
        producer: ProducerStamp = NO_PRODUCER,
        attributes: int = 0,
    ) -> bytearray:
        """The batch of all records so far."""
        header = BatchHeader(
            record_count=self.record_count,
            last_offset_delta=max(self.record_count - 1, 0),
            base_timestamp=self._base_timestamp,
            max_timestamp=self._max_timestamp,
            base_offset=base_offset,
            attributes=attributes | (TRANSACTIONAL_BIT if producer.is_transactional else 0),
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=producer.base_sequence,
        )
        return encode_batch(header, b"".join(self._parts), compression, level)


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    compression: Compression = Compression.NONE,
    level: int | None = None,
    producer: ProducerStamp = NO_PRODUCER,
) -> bytearray:
    """A batch of these records at consecutive offsets, whatever offsets they had."""
    builder = BatchBuilder()
    for record in records:
        builder.append(record.timestamp, record.key, record.value, record.headers)
    return builder.build(
        base_offset=base_offset, compression=compression, level=level, producer=producer
    )
