"""Record batches and old message sets, made and read by kafka-python as an independent hand."""

import time
from dataclasses import dataclass

from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder

Header = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Stored:
    """A record as a reader of raw bytes sees it."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int | None
    headers: tuple[Header, ...] = ()


@dataclass(frozen=True, slots=True)
class Sequenced:
    """Who an idempotent batch is from: producer id, epoch and the first sequence."""

    producer_id: int
    epoch: int
    sequence: int


def now_ms() -> int:
    return int(time.time() * 1000)


def batch(
    values: list[bytes | None],
    *,
    key: bytes | None = None,
    timestamp_ms: int | None = None,
    producer: Sequenced | None = None,
    codec: int = 0,
) -> bytes:
    """One batch of format 2; codec 1 is gzip, 3 is lz4."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=False,
        producer_id=producer.producer_id if producer else -1,
        producer_epoch=producer.epoch if producer else -1,
        base_sequence=producer.sequence if producer else -1,
        batch_size=1 << 30,
    )
    stamp = now_ms() if timestamp_ms is None else timestamp_ms
    for offset, value in enumerate(values):
        builder.append(offset, timestamp=stamp + offset, key=key, value=value, headers=[])
    return bytes(builder.build())


def message_set(
    values: list[bytes | None],
    *,
    magic: int,
    key: bytes | None = None,
    timestamp_ms: int | None = None,
    codec: int = 0,
) -> bytes:
    """An old message set of format 0 or 1; codec 1 is gzip, 3 is lz4."""
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=codec, batch_size=1 << 30)
    stamp = now_ms() if timestamp_ms is None else timestamp_ms
    for offset, value in enumerate(values):
        stamped = stamp + offset if magic else None
        builder.append(offset, timestamp=stamped, key=key, value=value, headers=[])
    return bytes(builder.build())


def read_records(data: bytes) -> list[Stored]:
    """All whole records in the bytes, checksums verified; a cut last batch is ignored."""
    records: list[Stored] = []
    batches = MemoryRecords(data)
    while batches.has_next():
        one = batches.next_batch()
        assert one.validate_crc(), "a batch with a wrong checksum was served"
        records.extend(
            Stored(record.offset, record.key, record.value, record.timestamp, tuple(record.headers))
            for record in one
        )
    return records


def magic_of(data: bytes) -> set[int]:
    """Which message formats occur in the bytes."""
    formats, batches = set(), MemoryRecords(data)
    while batches.has_next():
        formats.add(batches.next_batch().magic)
    return formats
