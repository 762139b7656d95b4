"""Wire batches to the columns a reader sees, and what a producer's answers add up to."""

import pytest

from ottla.clients.arrow.columns import (
    COLUMNS,
    checked_columns,
    decode_columns,
    read_schema,
)
from ottla.clients.arrow.table_sent import OffsetRange, Tally
from ottla.clients.failures import Fenced, TableNotSent, WrongUse
from ottla.clients.producer.batch import ProducerBatch
from ottla.errors import CorruptBatch, InvalidRecord
from ottla.model.ids import TopicPartition
from ottla.records.arrow_decode import Window
from ottla.records.batch import CRC_POSITION, RECORD_COUNT_POSITION, RecordBatch
from ottla.records.builder import build_batch
from ottla.records.compression import Compression
from ottla.records.record import Record
from support.record_loops import Loops, in_both_ways, using

pyarrow = pytest.importorskip("pyarrow")

HERE = TopicPartition("t", 3)
EVERYTHING = Window(0, 100)


def a_batch(start: int, end: int, *, append_time_ms: int | None = None) -> RecordBatch:
    records = [Record(offset, 1000 + offset, None, b"v", ()) for offset in range(start, end)]
    batch = RecordBatch(memoryview(build_batch(records, base_offset=start)))
    if append_time_ms is not None:
        batch.set_append_time(append_time_ms)
    return batch


@in_both_ways
def test_timestamps_say_whose_clock_they_are_of(loops: Loops) -> None:
    batches = [a_batch(0, 2), a_batch(2, 4, append_time_ms=77), a_batch(4, 5)]
    columns = ("timestamp_type", "timestamp", "partition")
    with using(loops):
        (chunk,) = decode_columns(batches, HERE, EVERYTHING, columns, checks_crc=True)
    assert chunk.schema.names == list(columns)
    assert chunk["timestamp_type"].to_pylist() == [0, 0, 1, 1, 0]
    assert chunk["timestamp"].cast("int64").to_pylist() == [1000, 1001, 77, 77, 1004]
    assert chunk["partition"].to_pylist() == [3] * 5


@in_both_ways
def test_a_window_cuts_both_ends_in_every_column(loops: Loops) -> None:
    batches = [a_batch(0, 10), a_batch(10, 20, append_time_ms=5), a_batch(20, 30)]
    with using(loops):
        (chunk,) = decode_columns(batches, HERE, Window(9, 21), COLUMNS, checks_crc=True)
        beyond = decode_columns(batches, HERE, Window(30, 40), COLUMNS, checks_crc=True)
        assert list(beyond) == []
    chunk.validate(full=True)
    assert chunk.schema == read_schema()
    assert chunk["offset"].to_pylist() == list(range(9, 21))
    assert chunk["timestamp_type"].to_pylist() == [0, *[1] * 10, 0]
    assert chunk["topic"].to_pylist() == ["t"] * 12


@in_both_ways
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP])
def test_a_damaged_batch_is_told_unless_nobody_looks(
    loops: Loops, compression: Compression
) -> None:
    records = [Record(offset, 1000, b"k", b"v", ()) for offset in range(3)]
    batch = RecordBatch(memoryview(build_batch(records, compression=compression)))
    batch.view[CRC_POSITION] ^= 1
    batches = [RecordBatch(batch.view)]
    with using(loops):
        with pytest.raises(CorruptBatch, match="t-3: the batch at offset 0 arrived damaged"):
            list(decode_columns(batches, HERE, EVERYTHING, COLUMNS, checks_crc=True))
        (chunk,) = decode_columns(batches, HERE, EVERYTHING, COLUMNS, checks_crc=False)
    assert chunk["value"].to_pylist() == [b"v"] * 3


@in_both_ways
@pytest.mark.parametrize("count", [-1, 2**31 - 1, 2])
def test_a_count_that_was_damaged_on_the_way_is_damage_and_not_a_bad_record(
    loops: Loops, count: int
) -> None:
    batch = a_batch(0, 3)
    batch.view[RECORD_COUNT_POSITION : RECORD_COUNT_POSITION + 4] = count.to_bytes(
        4, "big", signed=True
    )
    batches = [a_batch(0, 3), RecordBatch(batch.view)]
    with using(loops):
        with pytest.raises(CorruptBatch):
            list(decode_columns(batches, HERE, EVERYTHING, COLUMNS, checks_crc=True))
        with pytest.raises(InvalidRecord):
            list(decode_columns(batches, HERE, EVERYTHING, COLUMNS, checks_crc=False))


@in_both_ways
def test_a_table_takes_no_more_memory_than_its_values_and_numbers(loops: Loops) -> None:
    records = [Record(offset, 1000, b"k", b"v" * 50, ()) for offset in range(1000)]
    batch = RecordBatch(memoryview(build_batch(records)))
    with using(loops):
        (chunk,) = decode_columns([batch], HERE, Window(0, 1000), ("key", "value"), checks_crc=True)
    chunk.validate(full=True)
    keys, values = (chunk[name].buffers()[2].size for name in ("key", "value"))
    assert (keys, values) == (1000, 50_000)


def test_columns_that_are_not_there_are_refused() -> None:
    assert checked_columns("value") == ("value",)
    for wrong in (["colour"], [], ["key", "key"]):
        with pytest.raises(WrongUse):
            checked_columns(wrong)


def sent(partition: int, count: int, base_offset: int | None) -> ProducerBatch:
    batch = ProducerBatch("t", partition, 0.0)
    batch.record_count = count
    if base_offset is not None:
        batch.succeed(base_offset)
    return batch


def test_neighbouring_ranges_become_one_and_strangers_in_between_are_seen() -> None:
    tally = Tally("t")
    for batch in (sent(0, 5, 0), sent(1, 2, 9), sent(0, 5, 5), sent(0, 1, 12)):
        tally.add(batch)
    assert tally.waiting is None
    result = tally.result()
    assert result.record_count == 13
    assert [each.ranges for each in result.partitions] == [
        (OffsetRange(0, 10), OffsetRange(12, 13)),
        (OffsetRange(9, 11),),
    ]


def test_the_oldest_batch_without_an_answer_is_waited_for() -> None:
    tally = Tally("t")
    first, second = sent(0, 1, None), sent(0, 1, 1)
    tally.add(first)
    tally.add(second)
    assert tally.waiting is first
    first.succeed(0)
    assert tally.waiting is None


def test_an_error_says_what_was_written_and_a_fence_is_raised_as_it_is() -> None:
    tally = Tally("t")
    tally.add(sent(0, 5, 0))
    failed = sent(0, 3, None)
    failed.fail(WrongUse("no"))
    tally.add(failed)
    assert tally.waiting is None
    with pytest.raises(TableNotSent, match=r"5 records .* no") as caught:
        tally.result()
    assert (caught.value.sent.record_count, caught.value.failed_count) == (5, 3)

    fenced = Tally("t")
    fenced.add(sent(0, 5, 0))
    assert fenced.waiting is None
    fenced.stop(Fenced("name"))
    with pytest.raises(Fenced):
        fenced.result()
