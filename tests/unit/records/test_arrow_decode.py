"""Record batches to Arrow tables."""

import struct
import subprocess
import sys

import pytest

from ottla.errors import InvalidRecord
from ottla.records import arrow_decode
from ottla.records.arrow_decode import Window, decode_batches
from ottla.records.arrow_schema import record_schema
from ottla.records.batch import HEADER_BYTES, RECORD_COUNT_POSITION, RecordBatch
from ottla.records.builder import build_batch
from ottla.records.compression import Compression
from ottla.records.control import ControlType, EndTransactionMarker, marker_batch
from ottla.records.record import Record
from support.record_loops import Loops, in_both_ways, using

pyarrow = pytest.importorskip("pyarrow")

RECORDS = [
    Record(
        offset,
        1_000 + offset,
        None if offset % 3 == 0 else b"key %d" % offset,
        None if offset % 5 == 0 else b"v" * offset,
        (("name", b"x" * offset), ("größe", None)) if offset % 4 == 0 else (),
    )
    for offset in range(30)
]


def a_batch(records: list[Record], codec: Compression = Compression.NONE) -> RecordBatch:
    base = records[0].offset if records else 0
    return RecordBatch(memoryview(build_batch(records, base_offset=base, compression=codec)))


def records_of(table: "pyarrow.Table") -> list[Record]:
    return [
        Record(
            row["offset"],
            row["timestamp"],
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"]),
        )
        for row in table.set_column(1, "timestamp", table["timestamp"].cast("int64")).to_pylist()
    ]


@in_both_ways
@pytest.mark.parametrize("codec", list(Compression))
def test_a_table_holds_what_the_batches_hold(loops: Loops, codec: Compression) -> None:
    batches = [a_batch(RECORDS[:7], codec), a_batch(RECORDS[7:8]), a_batch(RECORDS[8:], codec)]
    with using(loops):
        table = decode_batches(batches, 3)
    table.validate(full=True)
    assert table.schema == record_schema()
    assert records_of(table) == RECORDS
    assert table["partition"].to_pylist() == [3] * len(RECORDS)


@in_both_ways
def test_no_batches_make_an_empty_table(loops: Loops) -> None:
    with using(loops):
        for batches in ([], [a_batch([])]):
            table = decode_batches(batches, 0)
            table.validate(full=True)
            assert table.schema == record_schema()
            assert table.num_rows == 0


@in_both_ways
def test_a_window_leaves_out_what_lies_outside(loops: Loops) -> None:
    batches = [a_batch(RECORDS[:10]), a_batch(RECORDS[10:20]), a_batch(RECORDS[20:])]
    with using(loops):
        table = decode_batches(batches, 0, Window(13, 21))
    table.validate(full=True)
    assert records_of(table) == RECORDS[13:21]


@in_both_ways
def test_markers_of_transactions_are_not_records(loops: Loops) -> None:
    marker = EndTransactionMarker(ControlType.COMMIT, 0)
    data = marker_batch(marker, producer_id=1, producer_epoch=0, timestamp=0)
    with using(loops):
        assert decode_batches([RecordBatch(memoryview(data))], 0).num_rows == 0


@in_both_ways
def test_a_header_key_that_is_not_text_is_mended_as_in_rows(loops: Loops) -> None:
    data = build_batch([Record(0, 0, None, None, (("abc", None),))])
    data[data.index(b"abc")] = 0xFF
    batch = RecordBatch(memoryview(data))
    with using(loops):
        assert records_of(decode_batches([batch], 0)) == list(batch.records())


@in_both_ways
def test_a_table_has_more_chunks_when_there_is_much(
    loops: Loops, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_decode, "CHUNK_BYTES", 100)
    batches = [a_batch(RECORDS[:10]), a_batch(RECORDS[10:20]), a_batch(RECORDS[20:])]
    with using(loops):
        table = decode_batches(batches, 0)
    assert table["value"].num_chunks == 3
    assert records_of(table) == RECORDS


@in_both_ways
@pytest.mark.parametrize("count", [-1, 29, 31, 2**31 - 1])
def test_a_wrong_count_of_records_is_refused_before_memory_is_taken(
    loops: Loops, count: int
) -> None:
    data = bytearray(a_batch(RECORDS).view)
    struct.pack_into(">i", data, RECORD_COUNT_POSITION, count)
    with using(loops), pytest.raises(InvalidRecord):
        decode_batches([RecordBatch(memoryview(data))], 0)


@in_both_ways
def test_every_cut_is_refused(loops: Loops) -> None:
    whole = bytes(a_batch(RECORDS[1:5]).view)
    with using(loops):
        for size in range(HEADER_BYTES, len(whole)):
            cut = bytearray(whole[:size])
            struct.pack_into(">i", cut, 8, size - 12)
            with pytest.raises(InvalidRecord):
                decode_batches([RecordBatch(memoryview(cut))], 0)


def test_nothing_imports_pyarrow_before_it_is_used() -> None:
    modules = "arrow_decode, arrow_encode, arrow_schema, rows, speed"
    code = f"import sys; from ottla.records import {modules}; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_without_pyarrow_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"ottla\[arrow\]"):
        decode_batches([], 0)
