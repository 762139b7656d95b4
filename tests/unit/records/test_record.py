"""Records inside a batch: numbers, decoding, scanning, checking."""

import struct

import pytest

from ottla.errors import InvalidRecord
from ottla.records.batch import LAST_OFFSET_DELTA_POSITION, RecordBatch
from ottla.records.builder import BatchHeader, build_batch, encode_batch
from ottla.records.compression import Compression
from ottla.records.record import (
    Record,
    RecordShape,
    as_int64,
    decode_records,
    encode_record,
    scan_records,
    varint,
    with_length,
)


def a_shape(count: int, **changes: int | None) -> RecordShape:
    fields: dict[str, int | None] = {
        "base_offset": 100,
        "base_timestamp": 1_000,
        "append_time": None,
        "record_count": count,
        "last_offset_delta": count - 1,
    }
    return RecordShape(**(fields | changes))  # type: ignore[arg-type]


def a_payload(*records: bytes) -> bytes:
    return b"".join(map(with_length, records))


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (64, "8001"),
        (-64, "7f"),
        (-65, "8101"),
        (8191, "fe7f"),
        (8192, "808001"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_numbers_are_zigzag_varints(number: int, encoded: str) -> None:
    assert varint(number).hex() == encoded


def test_small_numbers_are_looked_up_as_they_would_be_computed() -> None:
    for number in range(5_000):
        record = encode_record(number, number, None, None)
        assert record == b"\0" + varint(number) * 2 + b"\x01\x01\0"


def test_sums_past_64_bits_wrap() -> None:
    assert as_int64(2**63) == -(2**63)
    assert as_int64(-(2**63) - 1) == 2**63 - 1
    assert as_int64(5) == 5


def test_a_record_is_laid_out_as_the_format_says() -> None:
    record = with_length(encode_record(3, 1, b"k", None, (("h", b"v"), ("n", None))))
    assert record.hex() == "1c" + "00" + "06" + "02" + "026b" + "01" + "04" + "0268" + "0276" + (
        "026e" + "01"
    )


def test_records_come_back_with_their_offsets_and_timestamps() -> None:
    payload = a_payload(
        encode_record(0, 0, None, b""),
        encode_record(-5, 1, b"", None),
        encode_record(70_000, 300, b"k" * 300, b"v" * 70_000, (("a", b""), ("", None))),
    )
    assert list(decode_records(payload, a_shape(3))) == [
        Record(100, 1_000, None, b""),
        Record(101, 995, b"", None),
        Record(400, 71_000, b"k" * 300, b"v" * 70_000, (("a", b""), ("", None))),
    ]


def test_a_header_key_that_is_not_text_is_still_readable() -> None:
    body = b"\0\0\0\x01\x01\x02" + b"\x02\xff" + b"\x01"
    (record,) = decode_records(a_payload(body), a_shape(1))
    assert record.headers == (("�", None),)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"\0\0\0\x01\x01\x01", "the count of headers is negative"),
        (b"\0\0\0\x01\x01\x02\x01\x01", "a header's key is null"),
        (b"\0\0\0\x01\x01\x04\x00\x00", "fewer headers than announced"),
        (b"\0\0\0\x01\x40\x00", "the value is longer than the record"),
        (b"\0\0\0\x40\x01\x00", "the key is longer than the record"),
        (b"\0\0\0\x01\x01\x00\x00", "a byte is left over"),
        (b"\0" + b"\xff" * 11 + b"\0\0\x01\x01\x00", "a number of eleven bytes"),
    ],
)
def test_a_record_that_is_not_one_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(InvalidRecord):
        list(decode_records(a_payload(body), a_shape(1)))


@pytest.mark.parametrize("count", [-1, 1, 3, 2**31 - 1])
def test_a_count_that_disagrees_with_the_payload_is_refused(count: int) -> None:
    payload = a_payload(encode_record(0, 0, b"k", b"v"), encode_record(0, 1, b"k", b"v"))
    for read in (decode_records, scan_records):
        with pytest.raises(InvalidRecord):
            list(read(payload, a_shape(count)))


def test_a_payload_cut_anywhere_is_refused() -> None:
    payload = a_payload(encode_record(0, 0, b"k" * 100, b"v" * 100, (("h", b"v"),)))
    for size in range(len(payload)):
        for read in (decode_records, scan_records):
            with pytest.raises(InvalidRecord):
                list(read(payload[:size], a_shape(1)))


def test_scanning_tells_key_tombstone_and_extent() -> None:
    records = [
        encode_record(0, 0, b"a", b"value", (("h", b"v"),)),
        encode_record(-7, 4, b"b", None),
        encode_record(0, 5, None, b""),
    ]
    payload = a_payload(*records)
    scanned = list(scan_records(payload, a_shape(3)))
    assert [(raw.offset, raw.key, raw.has_value) for raw in scanned] == [
        (100, b"a", True),
        (104, b"b", False),
        (105, None, True),
    ]
    assert [raw.timestamp_delta for raw in scanned] == [0, -7, 0]
    assert [payload[raw.body_start : raw.end] for raw in scanned] == records
    assert b"".join(payload[raw.start : raw.end] for raw in scanned) == payload


def test_check_accepts_what_a_builder_makes() -> None:
    for codec in Compression:
        records = [Record(i, 5, b"k", b"v") for i in range(100)]
        batch = RecordBatch(memoryview(build_batch(records, compression=codec)))
        batch.check_records(needs_keys=True)


def test_check_finds_a_record_without_a_key_where_keys_are_needed() -> None:
    records = [Record(0, 5, b"k", b"v"), Record(1, 5, None, b"v")]
    batch = RecordBatch(memoryview(build_batch(records)))
    batch.check_records()
    with pytest.raises(InvalidRecord, match="key"):
        batch.check_records(needs_keys=True)


@pytest.mark.parametrize("offset_deltas", [(0, 0), (1, 0), (0, 2), (-1, 0)])
def test_check_finds_offsets_that_do_not_rise_to_the_last(offset_deltas: tuple[int, int]) -> None:
    payload = a_payload(*(encode_record(0, delta, b"k", b"v") for delta in offset_deltas))
    header = BatchHeader(record_count=2, last_offset_delta=1, base_timestamp=0, max_timestamp=0)
    batch = RecordBatch(memoryview(encode_batch(header, payload)))
    batch.check_as_produced()
    with pytest.raises(InvalidRecord):
        batch.check_records()


def test_gaps_between_offsets_are_fine_in_a_compacted_batch() -> None:
    payload = a_payload(encode_record(0, 1, b"k", b"v"), encode_record(0, 7, b"k", b"v"))
    header = BatchHeader(record_count=2, last_offset_delta=9, base_timestamp=0, max_timestamp=0)
    batch = RecordBatch(memoryview(encode_batch(header, payload)))
    batch.check()
    batch.check_records()
    assert struct.unpack_from(">i", batch.view, LAST_OFFSET_DELTA_POSITION) == (9,)


def test_a_compressed_batch_expands_only_to_its_limit() -> None:
    batch = RecordBatch(
        memoryview(build_batch([Record(0, 0, None, bytes(100_000))], compression=Compression.GZIP))
    )
    assert len(list(batch.records(limit_bytes=100_100))) == 1
    with pytest.raises(InvalidRecord):
        batch.records(limit_bytes=99_999)
    with pytest.raises(InvalidRecord):
        batch.check_records(limit_bytes=99_999)
