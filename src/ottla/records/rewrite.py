"""Batches made from batches: under another codec, or with fewer records.

Records are moved as bytes, never decoded and encoded again. What must stay true of a batch with
fewer records: base offset, last offset, producer, epoch, sequence and flags are the original's, so
that offsets and the state of producers come out the same when a compacted log is read again.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ottla.model.ids import NO_TIMESTAMP
from ottla.records.batch import (
    DELETE_HORIZON_BIT,
    RecordBatch,
    TimestampType,
)
from ottla.records.builder import BatchHeader, encode_batch, header_of
from ottla.records.compression import Compression
from ottla.records.record import RawRecord, as_int64, scan_records, varint, with_length


def recompress(batch: RecordBatch, codec: Compression, level: int | None = None) -> bytearray:
    """The same batch under another codec."""
    return encode_batch(header_of(batch), batch.payload(), codec, level)


def filter_records(
    batch: RecordBatch,
    keep: Callable[[RawRecord], bool],
    *,
    delete_horizon_ms: int | None = None,
) -> bytearray | memoryview | None:
    """The batch with only the records to keep; None when that is none of them.

    A delete horizon takes the place of the base timestamp, so the deltas are made anew against it.
    """
    payload = batch.payload()
    kept = [record for record in scan_records(payload, batch.shape()) if keep(record)]
    if not kept:
        return None
    if len(kept) == batch.record_count and delete_horizon_ms is None:
        return batch.view
    header = replace(header_of(batch), record_count=len(kept))
    if batch.timestamp_type is TimestampType.CREATE_TIME:
        newest = batch.base_timestamp + max(record.timestamp_delta for record in kept)
        header = replace(header, max_timestamp=as_int64(newest))
    if delete_horizon_ms is None:
        parts = [payload[record.start : record.end] for record in kept]
    else:
        header = replace(
            header,
            base_timestamp=delete_horizon_ms,
            attributes=header.attributes | DELETE_HORIZON_BIT,
        )
        moved = batch.base_timestamp - delete_horizon_ms
        parts = [_with_timestamp_moved(payload, record, moved) for record in kept]
    return encode_batch(header, b"".join(parts), batch.compression)


def empty_batch(batch: RecordBatch) -> bytearray:
    """The batch without its records: what is left to remember a producer's last sequence by."""
    header = replace(
        header_of(batch),
        record_count=0,
        base_timestamp=NO_TIMESTAMP,
        attributes=batch.attributes & ~DELETE_HORIZON_BIT,
    )
    return encode_batch(header, b"")


def offsets_only(batch: RecordBatch) -> bytearray:
    """A batch with the offsets and the epoch of another, and nothing else: no records, no producer,
    no transaction, no time."""
    header = BatchHeader(
        record_count=0,
        last_offset_delta=batch.last_offset_delta,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=NO_TIMESTAMP,
        base_offset=batch.base_offset,
        leader_epoch=batch.leader_epoch,
    )
    return encode_batch(header, b"")


def _with_timestamp_moved(payload: bytes, record: RawRecord, moved_ms: int) -> bytes:
    attributes = payload[record.body_start : record.body_start + 1]
    delta = varint(record.timestamp_delta + moved_ms)
    return with_length(attributes + delta + payload[record.offset_delta_start : record.end])
