"""Batches under another codec or with fewer records."""

import pytest

from ottla.records.batch import LOG_APPEND_TIME_BIT, RecordBatch, TimestampType
from ottla.records.builder import BatchBuilder, ProducerStamp, build_batch
from ottla.records.compression import Compression
from ottla.records.record import Record
from ottla.records.rewrite import empty_batch, filter_records, offsets_only, recompress

RECORDS = [
    Record(0, 1_000, b"a", b"1", (("h", b"\xff"),)),
    Record(1, 1_009, b"b", None),
    Record(2, 1_003, b"a", b"2"),
    Record(3, 1_001, b"c", b"3" * 200),
]


def a_batch(compression: Compression = Compression.NONE) -> RecordBatch:
    built = build_batch(
        RECORDS,
        compression=compression,
        producer=ProducerStamp(7, 8, 9, is_transactional=True),
    )
    batch = RecordBatch(memoryview(built))
    batch.assign(100, 4)
    return batch


def read(content: bytearray | memoryview | None) -> RecordBatch:
    assert content is not None
    batch = RecordBatch(memoryview(content))
    batch.check()
    batch.check_records()
    return batch


@pytest.mark.parametrize("before", Compression)
@pytest.mark.parametrize("after", Compression)
def test_recompressing_changes_only_the_codec(before: Compression, after: Compression) -> None:
    original = a_batch(before)
    batch = read(recompress(original, after))
    assert batch.compression is after
    assert list(batch.records()) == list(original.records())
    assert (batch.base_offset, batch.leader_epoch) == (100, 4)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 8, 9)
    assert batch.is_transactional


@pytest.mark.parametrize("compression", Compression)
def test_filtering_keeps_offsets_and_producer(compression: Compression) -> None:
    original = a_batch(compression)
    batch = read(filter_records(original, lambda record: record.key == b"a"))
    assert list(batch.records()) == [r for r in original.records() if r.key == b"a"]
    assert [record.offset for record in batch.records()] == [100, 102]
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (100, 103, 4)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 8, 9)
    assert batch.last_sequence == original.last_sequence
    assert batch.compression is compression
    assert batch.is_transactional


def test_the_largest_timestamp_is_that_of_the_records_kept() -> None:
    batch = read(filter_records(a_batch(), lambda record: record.has_value))
    assert batch.max_timestamp == 1_003


def test_append_time_stays_when_records_go() -> None:
    original = a_batch()
    original.set_append_time(5_000)
    batch = read(filter_records(original, lambda record: record.key == b"c"))
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [record.timestamp for record in batch.records()] == [5_000]


def test_a_batch_that_loses_nothing_is_not_copied() -> None:
    original = a_batch()
    assert filter_records(original, lambda record: True) is original.view


def test_a_batch_that_loses_everything_is_none() -> None:
    assert filter_records(a_batch(), lambda record: False) is None


@pytest.mark.parametrize("compression", Compression)
@pytest.mark.parametrize("horizon_ms", [0, 1_000, 50_000_000])
def test_a_delete_horizon_does_not_move_the_timestamps(
    compression: Compression, horizon_ms: int
) -> None:
    original = a_batch(compression)
    batch = read(
        filter_records(original, lambda record: record.key != b"c", delete_horizon_ms=horizon_ms)
    )
    assert original.delete_horizon_ms is None
    assert batch.delete_horizon_ms == horizon_ms
    assert list(batch.records()) == list(original.records())[:3]
    assert batch.max_timestamp == 1_009


def test_a_delete_horizon_survives_the_next_compaction() -> None:
    once = read(filter_records(a_batch(), lambda record: True, delete_horizon_ms=77))
    twice = read(filter_records(once, lambda record: record.key != b"a"))
    assert twice.delete_horizon_ms == 77
    assert [record.timestamp for record in twice.records()] == [1_009, 1_001]


def test_an_empty_batch_remembers_offsets_and_sequence() -> None:
    original = a_batch(Compression.GZIP)
    batch = read(empty_batch(original))
    assert batch.record_count == 0
    assert list(batch.records()) == []
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (100, 103, 4)
    assert (batch.producer_id, batch.producer_epoch) == (7, 8)
    assert batch.last_sequence == original.last_sequence
    assert batch.max_timestamp == original.max_timestamp
    assert batch.is_transactional
    assert batch.compression is Compression.NONE


def test_an_empty_batch_has_no_delete_horizon() -> None:
    once = read(filter_records(a_batch(), lambda record: True, delete_horizon_ms=77))
    assert read(empty_batch(once)).delete_horizon_ms is None


def test_a_horizon_on_a_batch_with_append_time_keeps_both() -> None:
    builder = BatchBuilder()
    builder.append(1_000, b"k", None)
    original = RecordBatch(memoryview(builder.build(attributes=LOG_APPEND_TIME_BIT)))
    batch = read(filter_records(original, lambda record: True, delete_horizon_ms=5))
    assert batch.delete_horizon_ms == 5
    assert [record.timestamp for record in batch.records()] == [1_000]


def test_what_stays_of_a_batch_for_its_offsets_says_nothing_else() -> None:
    batch = read(offsets_only(a_batch(Compression.GZIP)))
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (100, 103, 4)
    assert (batch.record_count, list(batch.records())) == (0, [])
    assert (batch.producer_id, batch.producer_epoch, batch.last_sequence) == (-1, -1, -1)
    assert (batch.base_timestamp, batch.max_timestamp) == (-1, -1)
    assert not batch.is_transactional
    assert batch.is_intact()
