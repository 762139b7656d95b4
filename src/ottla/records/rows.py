"""Whole batches to rows at once, faster than record by record.

Uses the compiled loops where they were built. For single records, and for what only looks at a
batch, see record.py and batch.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from ottla.records import speed
from ottla.records.batch import RecordBatch
from ottla.records.compression import DECOMPRESSED_BYTES_MAX
from ottla.records.record import Headers, Record

DecodedRow: TypeAlias = tuple[int, int, bytes | None, bytes | None, Headers]
"""Offset, timestamp, key, value, headers."""
Made = TypeVar("Made")
MakeRow: TypeAlias = Callable[[int, int, bytes | None, bytes | None, Headers], Made]


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
