"""Building batches record by record."""

from ottla.records.batch import HEADER_BYTES, RecordBatch
from ottla.records.builder import (
    BatchBuilder,
    ProducerStamp,
    build_batch,
    encode_batch,
    header_of,
)
from ottla.records.compression import Compression
from ottla.records.record import Record


def test_a_builder_knows_how_large_the_uncompressed_batch_is() -> None:
    builder = BatchBuilder()
    assert builder.size_bytes == HEADER_BYTES
    for number in range(3_000):
        assert builder.append(number, b"k", b"v" * (number % 200), (("h", None),)) == number
        if number % 500 == 0:
            assert builder.size_bytes == len(builder.build())
    assert builder.record_count == 3_000


def test_the_first_record_sets_the_base_and_the_newest_the_maximum() -> None:
    builder = BatchBuilder()
    for timestamp in (50, 40, 70, 60):
        builder.append(timestamp, None, b"v")
    batch = RecordBatch(memoryview(builder.build()))
    assert (batch.base_timestamp, batch.max_timestamp) == (50, 70)
    assert builder.max_timestamp == 70
    assert [record.timestamp for record in batch.records()] == [50, 40, 70, 60]


def test_timestamps_may_be_as_far_apart_as_64_bits() -> None:
    timestamps = [-1, 2**62, 0, 2**63 - 2]
    records = [Record(i, timestamp, None, b"") for i, timestamp in enumerate(timestamps)]
    batch = RecordBatch(memoryview(build_batch(records)))
    assert [record.timestamp for record in batch.records()] == timestamps


def test_offsets_count_from_the_base_whatever_the_records_had() -> None:
    batch = RecordBatch(
        memoryview(build_batch([Record(9, 0, None, b""), Record(2, 0, None, b"")], base_offset=40))
    )
    assert [record.offset for record in batch.records()] == [40, 41]
    assert (batch.base_offset, batch.last_offset) == (40, 41)


def test_the_producer_is_stamped_on_the_batch() -> None:
    stamp = ProducerStamp(123, 4, 56, is_transactional=True)
    batch = RecordBatch(memoryview(build_batch([Record(0, 0, None, b"")], producer=stamp)))
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (123, 4, 56)
    assert batch.is_transactional
    batch.check_as_produced()


def test_a_batch_made_again_from_its_own_header_is_the_same() -> None:
    original = build_batch(
        [Record(0, 5, b"k", b"v" * 500)] * 10,
        compression=Compression.LZ4,
        producer=ProducerStamp(1, 2, 3),
    )
    batch = RecordBatch(memoryview(original))
    assert encode_batch(header_of(batch), batch.payload(), Compression.LZ4) == original


def test_level_reaches_the_codec() -> None:
    records = [Record(i, 0, None, b"some text %d, and more text" % (i * 7919)) for i in range(500)]
    for codec in (Compression.GZIP, Compression.ZSTD):
        fast = build_batch(records, compression=codec, level=1)
        small = build_batch(records, compression=codec, level=9)
        assert len(small) < len(fast)
