"""Conversion between the old formats and version 2."""

import pytest

from ottla.errors import UnsupportedCompression
from ottla.records.batch import RecordBatch, TimestampType, split
from ottla.records.builder import build_batch
from ottla.records.compression import Compression
from ottla.records.control import ControlType, EndTransactionMarker, marker_batch
from ottla.records.legacy import downconvert, upconvert
from ottla.records.message_set import (
    LegacyMessage,
    compression_in,
    encode_message,
    encode_wrapped,
    read_messages,
)
from ottla.records.record import Record
from ottla.records.rewrite import filter_records

OLD_CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4]
RECORDS = [
    Record(0, 1_000, b"a", b"1", (("h", b"x"),)),
    Record(1, 1_009, None, b"2"),
    Record(2, 1_003, b"c", None),
]


def a_batch(base_offset: int, compression: Compression = Compression.NONE) -> bytes:
    return bytes(build_batch(RECORDS, base_offset=base_offset, compression=compression))


def messages_of(data: bytes) -> list[LegacyMessage]:
    return list(read_messages(memoryview(data)))


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Compression.NONE, *OLD_CODECS])
def test_several_wrappers_and_messages_become_one_batch(magic: int, codec: Compression) -> None:
    def message(number: int) -> LegacyMessage:
        return LegacyMessage(number, magic, b"k", b"%d" % number, 100 + number if magic else -1)

    parts = [encode_message(message(0))]
    if codec is Compression.NONE:
        parts += [encode_message(message(number)) for number in range(1, 6)]
    else:
        parts.append(encode_wrapped([message(1), message(2)], codec))
        parts.append(encode_wrapped([message(3), message(4), message(5)], codec))
    (batch,) = split(memoryview(upconvert(memoryview(b"".join(parts)))))
    batch.check_as_produced()
    batch.check_records(needs_keys=True)
    assert batch.compression is codec
    assert batch.max_timestamp == (105 if magic else -1)
    assert [record.value for record in batch.records()] == [b"%d" % n for n in range(6)]
    assert [record.timestamp for record in batch.records()] == [
        100 + number if magic else -1 for number in range(6)
    ]


def test_the_topics_codec_takes_precedence() -> None:
    wrapped = encode_wrapped([LegacyMessage(0, 1, None, b"v", 5)], Compression.GZIP)
    (batch,) = split(memoryview(upconvert(memoryview(wrapped), compression=Compression.ZSTD)))
    assert batch.compression is Compression.ZSTD
    assert [record.value for record in batch.records()] == [b"v"]


def test_brokers_timestamps_are_kept_apart_from_clients() -> None:
    parts = [
        LegacyMessage(0, 1, None, b"0", 5),
        LegacyMessage(1, 1, None, b"1", 9, is_append_time=True),
        LegacyMessage(2, 1, None, b"2", 9, is_append_time=True),
        LegacyMessage(3, 1, None, b"3", 10, is_append_time=True),
    ]
    batches = split(memoryview(upconvert(memoryview(b"".join(map(encode_message, parts))))))
    assert [batch.record_count for batch in batches] == [1, 2, 1]
    assert [batch.timestamp_type for batch in batches] == [
        TimestampType.CREATE_TIME,
        TimestampType.LOG_APPEND_TIME,
        TimestampType.LOG_APPEND_TIME,
    ]
    assert [record.timestamp for batch in batches for record in batch.records()] == [5, 9, 9, 10]


def test_nothing_becomes_nothing() -> None:
    assert upconvert(memoryview(b"")) == b""
    assert downconvert(memoryview(b""), 1) == b""


@pytest.mark.parametrize("codec", [Compression.NONE, *OLD_CODECS])
def test_going_down_drops_headers_and_keeps_offsets(codec: Compression) -> None:
    converted = downconvert(memoryview(a_batch(100, codec) + a_batch(103, codec)), 1)
    assert compression_in(memoryview(converted)) is codec
    assert messages_of(converted) == [
        LegacyMessage(base + record.offset, 1, record.key, record.value, record.timestamp)
        for base in (100, 103)
        for record in RECORDS
    ]


@pytest.mark.parametrize("codec", [Compression.NONE, *OLD_CODECS])
def test_going_down_to_format_0_drops_timestamps(codec: Compression) -> None:
    converted = downconvert(memoryview(a_batch(100, codec)), 0)
    assert messages_of(converted) == [
        LegacyMessage(100 + record.offset, 0, record.key, record.value) for record in RECORDS
    ]


@pytest.mark.parametrize("codec", [Compression.NONE, *OLD_CODECS])
@pytest.mark.parametrize("magic", [0, 1])
def test_offsets_with_gaps_survive_going_down(magic: int, codec: Compression) -> None:
    batch = RecordBatch(memoryview(bytearray(a_batch(100, codec))))
    compacted = filter_records(batch, lambda record: record.offset != 101)
    assert compacted is not None
    converted = downconvert(memoryview(compacted), magic)
    assert [message.offset for message in messages_of(converted)] == [100, 102]


@pytest.mark.parametrize("codec", [Compression.NONE, *OLD_CODECS])
@pytest.mark.parametrize("magic", [0, 1])
def test_records_before_the_start_are_left_out(magic: int, codec: Compression) -> None:
    stored = memoryview(a_batch(100, codec) + a_batch(103, codec))
    for start_offset in range(99, 107):
        offsets = [
            m.offset for m in messages_of(downconvert(stored, magic, start_offset=start_offset))
        ]
        assert offsets == list(range(max(start_offset, 100), 106))


def test_append_time_is_marked_in_format_1() -> None:
    batch = RecordBatch(memoryview(bytearray(a_batch(0, Compression.GZIP))))
    batch.set_append_time(77)
    for message in messages_of(downconvert(batch.view, 1)):
        assert (message.timestamp, message.is_append_time) == (77, True)


def test_control_batches_are_left_out() -> None:
    marker = EndTransactionMarker(ControlType.COMMIT, 0)
    control = marker_batch(marker, producer_id=1, producer_epoch=0, timestamp=0)
    stored = a_batch(0) + bytes(control) + a_batch(4)
    assert len(messages_of(downconvert(memoryview(stored), 1))) == 6


def test_zstd_cannot_go_down() -> None:
    with pytest.raises(UnsupportedCompression):
        downconvert(memoryview(a_batch(0, Compression.ZSTD)), 1)
