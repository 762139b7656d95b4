"""Arrow tables to record batches."""

import pytest

from ottla.clients.partitioner import partition_for_key
from ottla.errors import InvalidRecord
from ottla.records.arrow_encode import TableEncoding, encode_table, place_table
from ottla.records.batch import CRC_POSITION, SEQUENCES, RecordBatch
from ottla.records.builder import ProducerStamp
from ottla.records.compression import Compression
from ottla.records.record import Record
from support.record_loops import COMPILED, Loops, in_both_ways, using

pyarrow = pytest.importorskip("pyarrow")

NOW_MS = 1_700_000_000_000
HEADERS = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))


def read(batches: list[bytearray]) -> list[Record]:
    records = []
    for data in batches:
        batch = RecordBatch(memoryview(data))
        batch.check_as_produced()
        batch.check_records()
        records += batch.records()
    return records


def encoded(
    loops: Loops, table: "pyarrow.Table", encoding: TableEncoding | None = None
) -> list[bytearray]:
    with using(loops):
        return list(encode_table(table, NOW_MS, encoding or TableEncoding()))


@in_both_ways
@pytest.mark.parametrize("codec", list(Compression))
def test_a_table_becomes_records(loops: Loops, codec: Compression) -> None:
    table = pyarrow.table(
        {
            "key": pyarrow.array([b"a", None, b""], pyarrow.binary()),
            "value": pyarrow.array(["one", "zwölf", None], pyarrow.string()),
            "timestamp": pyarrow.array([5, None, 3], pyarrow.timestamp("ms", tz="UTC")),
            "headers": pyarrow.array(
                [[{"key": "h", "value": b"x"}, {"key": "ö", "value": None}], None, []], HEADERS
            ),
        }
    )
    [data] = encoded(loops, table, TableEncoding(compression=codec))
    assert RecordBatch(memoryview(data)).max_timestamp == NOW_MS
    assert read([data]) == [
        Record(0, 5, b"a", b"one", (("h", b"x"), ("ö", None))),
        Record(1, NOW_MS, None, "zwölf".encode(), ()),
        Record(2, 3, b"", None, ()),
    ]


@in_both_ways
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
def test_memory_of_earlier_batches_changes_nothing_in_later_ones(
    loops: Loops, codec: Compression
) -> None:
    table = pyarrow.table({"value": [b"%d" % number * 50 for number in range(1000)]})
    encoding = TableEncoding(batch_bytes=5000, compression=codec)
    spares = [bytearray(b"x" * size) for size in (0, 1, 4999, 5000, 5001, 100_000)]
    with using(loops):
        batches = list(encode_table(table, NOW_MS, encoding, spares))
    assert batches == encoded(loops, table, encoding)
    assert not spares


@pytest.mark.skipif(COMPILED is None, reason="there was no C compiler")
def test_memory_is_used_again_unless_somebody_looks_at_it() -> None:
    assert COMPILED is not None
    free, looked_at = bytearray(b"x" * 1000), bytearray(b"x" * 1000)
    view = memoryview(looked_at)
    table = pyarrow.table({"value": [b"v" * 300, b"w" * 300]})
    with using(COMPILED):
        made = list(encode_table(table, NOW_MS, TableEncoding(400), [free, looked_at]))
    assert bytes(view) == b"x" * 1000
    assert [batch is free for batch in made] == [False, True]
    assert [record.value for record in read(made)] == [b"v" * 300, b"w" * 300]


@in_both_ways
def test_a_checksum_may_be_left_to_whoever_stamps_the_batch(loops: Loops) -> None:
    table = pyarrow.table({"value": [b"a", b"b"]})
    [left_open] = encoded(loops, table, TableEncoding(has_checksums=False))
    [whole] = encoded(loops, table)
    end = CRC_POSITION + 4
    assert left_open[CRC_POSITION:end] == bytes(4) != whole[CRC_POSITION:end]
    assert left_open[:CRC_POSITION] + left_open[end:] == whole[:CRC_POSITION] + whole[end:]


@in_both_ways
def test_values_alone_are_enough(loops: Loops) -> None:
    records = read(encoded(loops, pyarrow.table({"value": [b"a", b"b"]})))
    assert records == [Record(0, NOW_MS, None, b"a"), Record(1, NOW_MS, None, b"b")]


@in_both_ways
@pytest.mark.parametrize(
    "kind",
    [
        pyarrow.binary(),
        pyarrow.large_binary(),
        pyarrow.string(),
        pyarrow.large_string(),
        pyarrow.binary(3),
        pyarrow.binary_view(),
        pyarrow.dictionary(pyarrow.int32(), pyarrow.string()),
    ],
    ids=str,
)
def test_every_kind_of_text_and_bytes_is_taken(loops: Loops, kind: "pyarrow.DataType") -> None:
    column = pyarrow.array([b"abc", b"abc", None, b"def"], pyarrow.binary()).cast(kind)
    records = read(encoded(loops, pyarrow.table({"value": column})))
    assert [record.value for record in records] == [b"abc", b"abc", None, b"def"]


@in_both_ways
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_every_unit_become_milliseconds(loops: Loops, unit: str) -> None:
    column = pyarrow.array([5_000], pyarrow.timestamp("ms")).cast(pyarrow.timestamp(unit))
    table = pyarrow.table({"value": [b""], "timestamp": column})
    assert read(encoded(loops, table))[0].timestamp == 5_000


@in_both_ways
@pytest.mark.parametrize("batch_bytes", [100, 500, 10_000])
def test_batches_stay_below_their_size(loops: Loops, batch_bytes: int) -> None:
    values = [b"v" * (size % 60) for size in range(200)]
    batches = encoded(
        loops, pyarrow.table({"value": values}), TableEncoding(batch_bytes=batch_bytes)
    )
    assert all(
        len(batch) <= batch_bytes or RecordBatch(memoryview(batch)).record_count == 1
        for batch in batches
    )
    assert [record.value for record in read(batches)] == values


@in_both_ways
def test_a_record_larger_than_a_batch_goes_alone(loops: Loops) -> None:
    values = [b"a", b"b" * 5_000, b"c"]
    batches = encoded(loops, pyarrow.table({"value": values}), TableEncoding(batch_bytes=200))
    assert [RecordBatch(memoryview(batch)).record_count for batch in batches] == [1, 1, 1]
    assert [record.value for record in read(batches)] == values


@in_both_ways
def test_sequences_follow_one_another_and_begin_again(loops: Loops) -> None:
    producer = ProducerStamp(9, 2, SEQUENCES - 2, is_transactional=True)
    encoding = TableEncoding(batch_bytes=90, producer=producer)
    batches = [
        RecordBatch(memoryview(data))
        for data in encoded(loops, pyarrow.table({"value": [b"v" * 15] * 3}), encoding)
    ]
    assert [batch.base_sequence for batch in batches] == [SEQUENCES - 2, SEQUENCES - 1, 0]
    assert all(batch.is_transactional and batch.producer_id == 9 for batch in batches)


@in_both_ways
def test_slices_and_chunks_are_taken_as_they_are(loops: Loops) -> None:
    keys = pyarrow.array([None if n % 3 == 0 else b"k%d" % n for n in range(50)], pyarrow.binary())
    headers = pyarrow.array(
        [[{"key": f"h{n}", "value": None}] * (n % 3) for n in range(50)], HEADERS
    )
    whole = pyarrow.table({"key": keys, "headers": headers})
    table = pyarrow.concat_tables([whole.slice(11, 20), whole.slice(3, 1), whole.slice(40)])
    records = read(encoded(loops, table))
    assert [record.key for record in records] == table["key"].to_pylist()
    assert [len(record.headers) for record in records] == [
        len(headers) for headers in table["headers"].to_pylist()
    ]
    [batch] = whole.slice(11, 20).combine_chunks().to_batches()
    assert [record.key for record in read(encoded(loops, batch))] == keys.to_pylist()[11:31]


@in_both_ways
def test_a_table_without_rows_makes_no_batches(loops: Loops) -> None:
    assert encoded(loops, pyarrow.table({"value": pyarrow.array([], pyarrow.binary())})) == []


@pytest.mark.parametrize("names", [["offset"], ["value", "colour"], ["value", "value"]])
def test_a_table_with_other_columns_is_refused(names: list[str]) -> None:
    table = pyarrow.table([[b"a"]] * len(names), names=names)
    with pytest.raises(InvalidRecord):
        list(encode_table(table, NOW_MS))


@in_both_ways
def test_a_header_without_a_key_is_refused(loops: Loops) -> None:
    headers = pyarrow.array([[{"key": None, "value": b""}]], HEADERS)
    with pytest.raises(InvalidRecord):
        encoded(loops, pyarrow.table({"value": [b""], "headers": headers}))


@in_both_ways
@pytest.mark.parametrize("partition_count", [1, 7, 1000])
def test_keys_go_where_every_client_sends_them(loops: Loops, partition_count: int) -> None:
    keys = [None if size % 9 == 4 else bytes(range(200, 200 + size)) for size in range(50)]
    table = pyarrow.table({"key": pyarrow.array(keys, pyarrow.binary())})
    with using(loops):
        for part in (table, table.slice(7, 30), pyarrow.concat_tables([table, table.slice(3)])):
            assert place_table(part, partition_count).to_pylist() == [
                -1 if key is None else partition_for_key(key, partition_count)
                for key in part["key"].to_pylist()
            ]


@in_both_ways
def test_rows_without_keys_have_no_place(loops: Loops) -> None:
    with using(loops):
        assert place_table(pyarrow.table({"value": [b"a", b"b"]}), 4).to_pylist() == [-1, -1]
        empty = pyarrow.table({"key": pyarrow.array([], pyarrow.binary())})
        assert place_table(empty, 4).to_pylist() == []
