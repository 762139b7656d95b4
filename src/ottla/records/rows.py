"""Whole batches from and to rows at once, faster than record by record.

Uses the compiled loops where they were built. For single records, and for what only looks at a
batch, see record.py and batch.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

from ottla.records import speed
from ottla.records.batch import HEADER_BYTES, TRANSACTIONAL_BIT, RecordBatch
from ottla.records.builder import NO_PRODUCER, BatchHeader, ProducerStamp, encode_batch, seal
from ottla.records.compression import DECOMPRESSED_BYTES_MAX, Compression
from ottla.records.record import Headers, Record

DecodedRow: TypeAlias = tuple[int, int, bytes | None, bytes | None, Headers]
"""Offset, timestamp, key, value, headers."""
EncodableRow: TypeAlias = tuple[int, bytes | None, bytes | None, Headers]
"""Timestamp, key, value, headers."""
Made = TypeVar("Made")
MakeRow: TypeAlias = Callable[[int, int, bytes | None, bytes | None, Headers], Made]

_NUMBER_BYTES_MAX: Final = 5
_RECORD_OVERHEAD_BYTES_MAX: Final = 1 + 10 + 5 * _NUMBER_BYTES_MAX
"""Attributes, a timestamp's delta, and the numbers of at most 32 bits."""


def read_rows(batch: RecordBatch, limit_bytes: int = DECOMPRESSED_BYTES_MAX) -> list[DecodedRow]:
    """A batch's records as tuples; InvalidRecord where its bytes do not bear its header out."""
    return speed.decoding.decode_rows(speed.payload_of(batch, limit_bytes), batch.shape())


def read_made(
    batch: RecordBatch, make_row: MakeRow[Made], limit_bytes: int = DECOMPRESSED_BYTES_MAX
) -> list[Made]:
    """The same, each row made by `make_row(offset, timestamp, key, value, headers)`."""
    payload = speed.payload_of(batch, limit_bytes)
    return speed.decoding.decode_rows(payload, batch.shape(), make_row)


def read_records(batch: RecordBatch, limit_bytes: int = DECOMPRESSED_BYTES_MAX) -> list[Record]:
    """The same as Records."""
    if not speed.IS_ACCELERATED:  # written for Python alone, and faster there
        return list(batch.records(limit_bytes))
    return read_made(batch, Record, limit_bytes)


def row_bytes_max(key: bytes | None, value: bytes | None, headers: Headers = ()) -> int:
    """What a record takes in a batch at most: what an accumulator counts before it encodes."""
    size = _RECORD_OVERHEAD_BYTES_MAX
    if key is not None:
        size += len(key)
    if value is not None:
        size += len(value)
    for name, content in headers:
        size += 2 * _NUMBER_BYTES_MAX + (len(name) if name.isascii() else len(name.encode()))
        if content is not None:
            size += len(content)
    return size


def build_rows(
    rows: list[EncodableRow],
    *,
    compression: Compression = Compression.NONE,
    level: int | None = None,
    producer: ProducerStamp = NO_PRODUCER,
) -> bytearray:
    """A batch of these rows, at consecutive offsets from 0."""
    header = BatchHeader(
        record_count=len(rows),
        last_offset_delta=max(len(rows) - 1, 0),
        base_timestamp=rows[0][0] if rows else -1,
        max_timestamp=max([row[0] for row in rows], default=-1),
        attributes=TRANSACTIONAL_BIT if producer.is_transactional else 0,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=producer.base_sequence,
    )
    if compression is not Compression.NONE:
        return encode_batch(header, speed.encoding.encode_rows(rows), compression, level)
    batch = speed.encoding.encode_rows(rows, HEADER_BYTES)
    seal(batch, header, compression)
    return batch
