"""The header of a batch: reading, checking, stamping, splitting."""

import struct

import pytest
from crc32c import crc32c

from ottla.errors import (
    CorruptBatch,
    InvalidRecord,
    UnsupportedCompression,
    UnsupportedForMessageFormat,
)
from ottla.records import batch as layout
from ottla.records.batch import RecordBatch, TimestampType, magic_of, split
from ottla.records.builder import ProducerStamp, build_batch
from ottla.records.compression import Compression
from ottla.records.record import Record


def some_records(count: int = 3) -> list[Record]:
    return [Record(i, 1_000 + i, b"key %d" % i, b"value %d" % i) for i in range(count)]


def a_batch(count: int = 3, **options: object) -> RecordBatch:
    return RecordBatch(memoryview(build_batch(some_records(count), **options)))  # type: ignore[arg-type]


def changed(batch: RecordBatch, position: int, layout_of_field: str, value: int) -> RecordBatch:
    """The batch with another value in one field of its header, and a checksum that agrees."""
    copy = bytearray(batch.view)
    struct.pack_into(layout_of_field, copy, position, value)
    struct.pack_into(">I", copy, layout.CRC_POSITION, crc32c(copy[layout.ATTRIBUTES_POSITION :]))
    return RecordBatch(memoryview(copy))


def test_the_header_is_sixty_one_bytes_with_its_fields_where_the_format_says() -> None:
    view = a_batch(base_offset=7, producer=ProducerStamp(5, 6, 8, is_transactional=True)).view
    assert layout.HEADER_BYTES == 61
    for position, field, expected in [
        (layout.BASE_OFFSET_POSITION, ">q", 7),
        (layout.LENGTH_POSITION, ">i", len(view) - 12),
        (layout.LEADER_EPOCH_POSITION, ">i", -1),
        (layout.MAGIC_POSITION, ">b", 2),
        (layout.ATTRIBUTES_POSITION, ">h", layout.TRANSACTIONAL_BIT),
        (layout.LAST_OFFSET_DELTA_POSITION, ">i", 2),
        (layout.BASE_TIMESTAMP_POSITION, ">q", 1_000),
        (layout.MAX_TIMESTAMP_POSITION, ">q", 1_002),
        (layout.PRODUCER_ID_POSITION, ">q", 5),
        (layout.PRODUCER_EPOCH_POSITION, ">h", 6),
        (layout.BASE_SEQUENCE_POSITION, ">i", 8),
        (layout.RECORD_COUNT_POSITION, ">i", 3),
    ]:
        assert struct.unpack_from(field, view, position) == (expected,)


def test_derived_facts_follow_from_the_header() -> None:
    batch = a_batch(
        base_offset=10,
        compression=Compression.ZSTD,
        producer=ProducerStamp(5, 6, 8, is_transactional=True),
    )
    assert (batch.last_offset, batch.next_offset) == (12, 13)
    assert batch.last_sequence == 10
    assert batch.compression is Compression.ZSTD
    assert batch.is_compressed
    assert batch.is_transactional
    assert batch.has_producer
    assert not batch.is_control
    assert batch.timestamp_type is TimestampType.CREATE_TIME
    assert batch.delete_horizon_ms is None


def test_sequences_begin_again_after_the_largest() -> None:
    batch = a_batch(3, producer=ProducerStamp(5, 0, 2**31 - 2))
    assert batch.last_sequence == 0


def test_a_batch_without_a_sequence_has_no_last_sequence() -> None:
    assert a_batch().last_sequence == -1


def test_assign_leaves_the_checksum_right() -> None:
    batch = a_batch()
    batch.assign(1_234, 56)
    read_again = RecordBatch(batch.view)
    assert (read_again.base_offset, read_again.leader_epoch) == (1_234, 56)
    assert (batch.base_offset, batch.leader_epoch) == (1_234, 56)
    assert read_again.size_bytes == batch.size_bytes
    assert read_again.is_intact()


def test_append_time_becomes_the_timestamp_of_every_record() -> None:
    batch = a_batch(compression=Compression.GZIP)
    batch.set_append_time(99)
    read_again = RecordBatch(batch.view)
    assert read_again.is_intact()
    assert read_again.crc == batch.crc
    assert read_again.compression is Compression.GZIP
    assert read_again.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert (read_again.base_timestamp, read_again.max_timestamp) == (1_000, 99)
    assert [record.timestamp for record in read_again.records()] == [99, 99, 99]


def test_any_flipped_bit_behind_the_checksum_is_noticed() -> None:
    original = a_batch(1)
    for position in range(layout.ATTRIBUTES_POSITION, original.size_bytes):
        for bit in range(8):
            copy = bytearray(original.view)
            copy[position] ^= 1 << bit
            damaged = RecordBatch(memoryview(copy))
            assert not damaged.is_intact()
            with pytest.raises(CorruptBatch):
                damaged.check()
            with pytest.raises(CorruptBatch):
                damaged.check_as_produced()


@pytest.mark.parametrize("size", [0, 1, 12, 60])
def test_too_few_bytes_for_a_header_are_corrupt(size: int) -> None:
    with pytest.raises(CorruptBatch):
        RecordBatch(a_batch().view[:size])


def test_a_length_that_disagrees_with_the_bytes_is_corrupt() -> None:
    view = a_batch().view
    with pytest.raises(CorruptBatch):
        RecordBatch(view[:-1])
    with pytest.raises(CorruptBatch):
        RecordBatch(memoryview(bytes(view) + b"x"))


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_named_as_such(magic: int) -> None:
    copy = bytearray(a_batch().view)
    copy[layout.MAGIC_POSITION] = magic
    with pytest.raises(UnsupportedForMessageFormat):
        RecordBatch(memoryview(copy))
    assert magic_of(memoryview(copy)) == magic


@pytest.mark.parametrize("magic", [3, 255])
def test_formats_nobody_knows_are_corrupt(magic: int) -> None:
    copy = bytearray(a_batch().view)
    copy[layout.MAGIC_POSITION] = magic
    with pytest.raises(CorruptBatch):
        RecordBatch(memoryview(copy))


def test_the_magic_of_too_few_bytes_is_corrupt() -> None:
    with pytest.raises(CorruptBatch):
        magic_of(memoryview(bytes(16)))


@pytest.mark.parametrize("count", [-1, 4])
def test_a_log_holds_no_batch_with_more_records_than_offsets(count: int) -> None:
    batch = changed(a_batch(), layout.RECORD_COUNT_POSITION, ">i", count)
    with pytest.raises(InvalidRecord):
        batch.check()


def test_a_log_may_hold_a_batch_with_gaps_but_a_client_may_not_send_one() -> None:
    batch = changed(a_batch(), layout.RECORD_COUNT_POSITION, ">i", 2)
    batch.check()
    with pytest.raises(InvalidRecord):
        batch.check_as_produced()


def test_a_client_may_not_send_a_batch_without_records() -> None:
    batch = changed(a_batch(), layout.RECORD_COUNT_POSITION, ">i", 0)
    batch.check()
    with pytest.raises(InvalidRecord):
        batch.check_as_produced()


def test_a_client_may_not_send_control_records() -> None:
    batch = changed(a_batch(), layout.ATTRIBUTES_POSITION, ">h", layout.CONTROL_BIT)
    with pytest.raises(InvalidRecord):
        batch.check_as_produced()


def test_a_transactional_batch_needs_a_producer() -> None:
    batch = changed(a_batch(), layout.ATTRIBUTES_POSITION, ">h", layout.TRANSACTIONAL_BIT)
    with pytest.raises(InvalidRecord):
        batch.check_as_produced()


@pytest.mark.parametrize("producer", [ProducerStamp(5, 0, -1), ProducerStamp(5, -1, 0)])
def test_a_producer_needs_an_epoch_and_a_sequence(producer: ProducerStamp) -> None:
    with pytest.raises(InvalidRecord):
        a_batch(producer=producer).check_as_produced()


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_refused(codec: int) -> None:
    batch = changed(a_batch(), layout.ATTRIBUTES_POSITION, ">h", codec)
    with pytest.raises(UnsupportedCompression):
        batch.check_as_produced()
    with pytest.raises(UnsupportedCompression):
        batch.records()


def test_split_finds_each_batch_in_order() -> None:
    first, second = a_batch(2), a_batch(5)
    joined = memoryview(bytes(first.view) + bytes(second.view))
    assert [batch.record_count for batch in split(joined)] == [2, 5]
    assert split(memoryview(b"")) == []
    assert split(first.view)[0].view is first.view


def test_split_refuses_a_torn_tail_unless_told_to_leave_it_out() -> None:
    first, second = a_batch(2), a_batch(5)
    whole = bytes(first.view) + bytes(second.view)
    for size in range(first.size_bytes + 1, len(whole)):
        torn = memoryview(whole)[:size]
        with pytest.raises(CorruptBatch):
            split(torn)
        assert [batch.record_count for batch in split(torn, ignore_torn_tail=True)] == [2]


@pytest.mark.parametrize("length", [-(2**31), -12, 0, 48])
def test_split_refuses_a_batch_shorter_than_its_header(length: int) -> None:
    copy = bytearray(a_batch().view)
    struct.pack_into(">i", copy, layout.LENGTH_POSITION, length)
    with pytest.raises(CorruptBatch):
        split(memoryview(copy), ignore_torn_tail=True)


def test_a_second_batch_as_long_as_the_whole_is_torn() -> None:
    first, second = a_batch(2), bytearray(a_batch(2).view)
    whole = bytearray(first.view) + second
    struct.pack_into(">i", whole, first.size_bytes + layout.LENGTH_POSITION, len(whole) - 12)
    with pytest.raises(CorruptBatch):
        split(memoryview(whole))
