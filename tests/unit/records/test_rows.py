"""Whole batches to rows."""

import pytest

from ottla.errors import InvalidRecord
from ottla.records.batch import RecordBatch
from ottla.records.builder import build_batch
from ottla.records.compression import Compression
from ottla.records.record import Record
from ottla.records.rows import read_made, read_records, read_rows
from support.record_loops import Loops, in_both_ways, using

RECORDS = [
    Record(0, 1_000, b"key", b"value", ()),
    Record(1, 999, None, b"", (("name", b"x"), ("größe", None))),
    Record(2, 2**40, b"", None, (("", b""),)),
    Record(3, -1, b"k" * 5_000, b"v" * 70_000, ()),
]


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
def test_a_batch_without_records_has_no_rows(loops: Loops) -> None:
    with using(loops):
        batch = RecordBatch(memoryview(build_batch([])))
        assert read_rows(batch) == []


@in_both_ways
def test_a_damaged_record_is_an_invalid_record(loops: Loops) -> None:
    damaged = build_batch(RECORDS)
    damaged[61] += 2
    with using(loops), pytest.raises(InvalidRecord):
        read_rows(RecordBatch(memoryview(damaged)))
