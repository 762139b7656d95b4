"""What a log asks of records before it takes them, and what it changes about them on the way in.

Every batch is intact, not too large and of the current format; by the topic's settings it gets the
broker's time or keeps its own within bounds, keeps its codec or is recompressed. What a client
sends must bear its header out (`records.check`): else its readers would stand still there for ever.
What a leader has taken is only looked at for damage, since a follower must have it too.
Does not know offsets, producers or files.
"""

from __future__ import annotations

from typing import Final

from ottla.errors import (
    ExpandsTooFar,
    InvalidRecord,
    InvalidTimestamp,
    OffsetOutOfRange,
    RecordListTooLarge,
    RecordTooLarge,
)
from ottla.model.ids import Offset
from ottla.records.batch import LOG_APPEND_TIME_BIT, MAGIC, RecordBatch, magic_of, split
from ottla.records.compression import (
    COMPRESSION_BITS,
    DECOMPRESSED_BYTES_MAX,
    Compression,
    compression_named,
)
from ottla.records.legacy import upconvert
from ottla.records.record import as_int64
from ottla.records.rewrite import recompress
from ottla.records.speed import IS_ACCELERATED, check_produced, payload_of
from ottla.settings.topic import (
    CHECK_ALL,
    CHECK_AUTO,
    CHECK_UNCOMPRESSED,
    LOG_APPEND_TIME,
    TopicSettings,
)
from ottla.storage.producer_state import Origin

LOOP_BYTES_MAX: Final = 256 * 1024
"""What is decompressed or compressed while the event loop waits; more is a thread's to do."""
CONTENT_BYTES_ALWAYS: Final = 16 * 1024 * 1024
CONTENT_RATIO_MAX: Final = 64


class AdmissionRules:
    """A topic's settings, as far as they concern single batches."""

    __slots__ = (
        *("after_max_ms", "batch_bytes_max", "before_max_ms", "codec", "codec_level"),
        *("needs_keys", "reads_records", "segment_bytes", "stamps_append_time"),
        *("walks_compressed", "walks_plain"),
    )

    def __init__(self, settings: TopicSettings) -> None:
        self.batch_bytes_max: int = settings.max_message_bytes
        self.segment_bytes: int = settings.segment_bytes
        self.stamps_append_time: bool = settings.message_timestamp_type == LOG_APPEND_TIME
        self.before_max_ms: int = settings.message_timestamp_before_max_ms
        self.after_max_ms: int = settings.message_timestamp_after_max_ms
        self.codec = _codec(settings)
        """None keeps the producer's."""
        self.codec_level = _codec_level(settings, self.codec)
        self.needs_keys: bool = settings.is_compacted
        self.reads_records = self.codec is not None or self.needs_keys
        """Does any of this need more than the batches' headers?"""
        check = settings.records_check
        self.walks_compressed: bool = check == CHECK_ALL
        self.walks_plain: bool = check in (CHECK_ALL, CHECK_UNCOMPRESSED) or (
            check == CHECK_AUTO and IS_ACCELERATED
        )


def _codec(settings: TopicSettings) -> Compression | None:
    name = settings.compression_type
    return None if name == "producer" else compression_named(name)


def _codec_level(settings: TopicSettings, codec: Compression | None) -> int | None:
    if codec is Compression.GZIP and settings.compression_gzip_level != -1:
        return settings.compression_gzip_level
    if codec is Compression.LZ4:
        return settings.compression_lz4_level
    if codec is Compression.ZSTD:
        return settings.compression_zstd_level
    return None


def admit(
    records: memoryview, rules: AdmissionRules, now_ms: int, origin: Origin
) -> tuple[memoryview, list[RecordBatch]]:
    """The bytes to write and the batches they are made of, as views into those bytes.

    They are `records` itself where nothing had to be rewritten; it is stamped in place.
    ExpandsTooFar where looking at them takes long: then a thread has to, by `checked`.
    """
    is_client = origin is not Origin.COORDINATOR
    if origin is Origin.CLIENT:
        records, batches = _checked(records, rules, LOOP_BYTES_MAX)
    else:
        if records.readonly:
            records = memoryview(bytearray(records))
        batches = split(records)
        for batch in batches:
            batch.check()
    if not batches:
        raise InvalidRecord("there are no records to append")
    for batch in batches:
        if batch.size_bytes > rules.batch_bytes_max:
            raise RecordTooLarge(batch.size_bytes, rules.batch_bytes_max)
        if rules.stamps_append_time:
            batch.set_append_time(now_ms)
        elif is_client:
            _check_time(batch, rules, now_ms)
    if len(records) > rules.segment_bytes:
        raise RecordListTooLarge(len(records), rules.segment_bytes)
    return records, batches


def checked(records: memoryview, settings: TopicSettings) -> memoryview:
    """What a client sent, in the form in which it is stored; InvalidRecord where it lies.

    Takes long for records that expand far, and may run in any thread: it knows no log. What it
    gives is to be appended as from a CHECKED_CLIENT.
    """
    return _checked(records, AdmissionRules(settings), content_bytes_max(len(records)))[0]


def content_bytes_max(size_bytes: int) -> int:
    """To how much a batch of this size may expand: no client sends what a bomb is made of."""
    return min(DECOMPRESSED_BYTES_MAX, CONTENT_BYTES_ALWAYS + CONTENT_RATIO_MAX * size_bytes)


def _checked(
    records: memoryview, rules: AdmissionRules, limit_bytes: int
) -> tuple[memoryview, list[RecordBatch]]:
    is_current = magic_of(records) == MAGIC
    if not is_current:
        records = memoryview(upconvert(records, limit_bytes=limit_bytes))
    elif records.readonly:
        records = memoryview(bytearray(records))
    batches = split(records)
    if is_current and len(batches) > 1:
        raise InvalidRecord("a producer sends one batch for a partition at a time")
    for batch in batches:
        batch.check_as_produced()
        _check_records(batch, rules, limit_bytes)
    if rules.codec is None or all(batch.compression is rules.codec for batch in batches):
        return records, batches
    if len(records) > limit_bytes:
        raise ExpandsTooFar(f"{len(records)} bytes are to be compressed")
    return _recompressed(batches, rules, rules.codec)


def _check_time(batch: RecordBatch, rules: AdmissionRules, now_ms: int) -> None:
    """The header carries the earliest and the latest time; single records are not read."""
    if batch.max_timestamp - now_ms > rules.after_max_ms or batch.attributes & LOG_APPEND_TIME_BIT:
        raise InvalidTimestamp(batch.max_timestamp, now_ms)
    if 0 <= batch.base_timestamp < now_ms - rules.before_max_ms:
        raise InvalidTimestamp(batch.base_timestamp, now_ms)


def check_replicated(records: memoryview, next_offset: Offset) -> list[RecordBatch]:
    """The batches a leader sent, which must be intact and continue from `next_offset`."""
    batches = split(records)
    start = expected = next_offset
    for batch in batches:
        batch.check()
        if batch.base_offset < expected:
            raise OffsetOutOfRange(batch.base_offset, start, expected)
        expected = batch.next_offset
    return batches


def _check_records(batch: RecordBatch, rules: AdmissionRules, limit_bytes: int) -> None:
    """Refuse a batch whose records are not those its header speaks of.

    Its latest time is corrected, as Kafka does: there are clients that never set it.
    """
    if batch.attributes & COMPRESSION_BITS:
        is_walked = rules.walks_compressed or rules.reads_records or batch.is_doubtful()
    else:
        is_walked = rules.walks_plain or rules.reads_records
    if not is_walked:
        return
    payload = payload_of(batch, limit_bytes)
    try:
        _, latest = check_produced(payload, batch.record_count, rules.needs_keys)
    except InvalidRecord:
        if rules.needs_keys:
            batch.check_records(needs_keys=True, limit_bytes=limit_bytes)  # names each without one
        raise
    if rules.stamps_append_time:
        return
    latest = as_int64(batch.base_timestamp + latest)
    if latest != batch.max_timestamp:
        batch.set_max_timestamp(latest)


def _recompressed(
    batches: list[RecordBatch], rules: AdmissionRules, codec: Compression
) -> tuple[memoryview, list[RecordBatch]]:
    """The same under the topic's own codec."""
    data = bytearray()
    for batch in batches:
        if batch.compression is codec:
            data += batch.view
        else:
            data += recompress(batch, codec, rules.codec_level)
    view = memoryview(data)
    return view, split(view)
