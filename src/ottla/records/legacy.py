"""Old clients on a new log: message sets become version 2 batches, and the reverse.

Converting is the only reason, besides compaction and recompression, to look at single records.
Does not know which client asks, or where the records go.
"""

from __future__ import annotations

from itertools import groupby

from ottla.records.batch import LOG_APPEND_TIME_BIT, RecordBatch, TimestampType, split
from ottla.records.builder import BatchBuilder
from ottla.records.compression import DECOMPRESSED_BYTES_MAX, Compression
from ottla.records.message_set import (
    LegacyMessage,
    compression_in,
    encode_message,
    encode_wrapped,
    read_messages,
)


def upconvert(
    view: memoryview,
    *,
    compression: Compression | None = None,
    level: int | None = None,
    limit_bytes: int = DECOMPRESSED_BYTES_MAX,
) -> bytearray:
    """A message set of format 0 or 1 as version 2 batches.

    Under the set's own codec unless `compression` names another. One batch, unless the set mixes
    clients' timestamps with brokers'. Offsets are left at 0 and up, for the log to assign; a
    message of format 0 has no timestamp and gets none.
    """
    every = list(read_messages(view, limit_bytes=limit_bytes))  # first: it checks what they say
    codec = compression_in(view) if compression is None else compression
    batches = bytearray()
    for append_time, messages in groupby(every, _append_time):
        builder = BatchBuilder()
        for message in messages:
            builder.append(message.timestamp, message.key, message.value)
        attributes = 0 if append_time is None else LOG_APPEND_TIME_BIT
        batches += builder.build(compression=codec, level=level, attributes=attributes)
    return batches


def _append_time(message: LegacyMessage) -> int | None:
    return message.timestamp if message.is_append_time else None


def downconvert(view: memoryview, magic: int, *, start_offset: int = 0) -> bytes:
    """Version 2 batches as a message set of format 0 or 1, from `start_offset` on.

    Headers are lost, and in format 0 timestamps. Control batches are left out: old clients would
    take them for data. A compressed batch becomes one wrapping message.
    """
    assert magic in (0, 1), magic
    parts: list[bytes] = []
    for batch in split(view):
        if batch.is_control or batch.next_offset <= start_offset:
            continue
        messages = _as_messages(batch, magic, start_offset)
        if not messages:
            continue
        if batch.is_compressed:
            parts.append(encode_wrapped(messages, batch.compression))
        else:
            parts += map(encode_message, messages)
    return b"".join(parts)


def _as_messages(batch: RecordBatch, magic: int, start_offset: int) -> list[LegacyMessage]:
    is_append_time = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    return [
        LegacyMessage(
            record.offset, magic, record.key, record.value, record.timestamp, is_append_time
        )
        for record in batch.records()
        if record.offset >= start_offset
    ]
