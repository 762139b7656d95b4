"""Whole batches from and to rows."""

import pytest

from ottla.errors import InvalidRecord
from ottla.records.batch import RecordBatch
from ottla.records.builder import ProducerStamp, build_batch
from ottla.records.compression import Compression
from ottla.records.record import Record
from ottla.records.rows import build_rows, read_made, read_records, read_rows, row_bytes_max
from support.record_loops import Loops, in_both_ways, using

RECORDS = [
    Record(0, 1_000, b"key", b"value", ()),
    Record(1, 999, None, b"", (("name", b"x"), ("größe", None))),
    Record(2, 2**40, b"", None, (("", b""),)),
    Record(3, -1, b"k" * 5_000, b"v" * 70_000, ()),
]
ROWS = [(record.timestamp, record.key, record.value, record.headers) for record in RECORDS]


@in_both_ways
@pytest.mark.parametrize("codec", list(Compression))
def test_rows_make_the_batch_that_records_make(loops: Loops, codec: Compression) -> None:
    producer = ProducerStamp(7, 1, 40, is_transactional=True)
    with using(loops):
        batch = build_rows(ROWS, compression=codec, producer=producer)
    assert batch == build_batch(RECORDS, compression=codec, producer=producer)


@in_both_ways
@pytest.mark.parametrize("codec", list(Compression))
def test_a_batch_gives_its_rows_back(loops: Loops, codec: Compression) -> None:
    batch = RecordBatch(memoryview(build_batch(RECORDS, base_offset=50, compression=codec)))
    expected = list(batch.records())
    with using(loops):
        assert read_records(batch) == expected
        assert read_made(batch, Record) == expected
        assert [Record(*row) for row in read_rows(batch)] == expected


@in_both_ways
def test_rows_carry_the_time_of_the_append_if_that_counts(loops: Loops) -> None:
    batch = RecordBatch(memoryview(build_batch(RECORDS)))
    batch.set_append_time(5_000)
    with using(loops):
        assert {row[1] for row in read_rows(batch)} == {5_000}


@in_both_ways
def test_no_rows_make_a_batch_without_records(loops: Loops) -> None:
    with using(loops):
        batch = RecordBatch(memoryview(build_rows([])))
        assert read_rows(batch) == []


@in_both_ways
def test_a_damaged_record_is_an_invalid_record(loops: Loops) -> None:
    damaged = build_batch(RECORDS)
    damaged[61] += 2
    with using(loops), pytest.raises(InvalidRecord):
        read_rows(RecordBatch(memoryview(damaged)))


@in_both_ways
def test_rows_that_change_while_their_headers_are_encoded_are_refused_or_encoded(
    loops: Loops,
) -> None:
    """Encoding a header's name runs code that could do anything, even in a str."""
    rows: list[tuple[int, bytes | None, bytes | None, object]] = []

    class Name(str):
        def encode(self, *_: object) -> bytes:  # type: ignore[override]
            rows[0] = (0, b"k" * 10_000, None, ())
            return b"name"

    rows += [(0, b"k", None, ()), (0, None, None, ((Name("name"), b""),))]
    with using(loops):
        try:
            build_rows(rows)
        except ValueError:
            pass


def test_the_most_a_row_can_take_is_no_less_than_what_it_takes() -> None:
    for row in ROWS:
        _, key, value, headers = row
        taken = len(build_rows([(0, None, None, ()), row])) - len(build_rows([(0, None, None, ())]))
        assert taken <= row_bytes_max(key, value, headers) <= taken + 60
