"""Rows become record batches for the partition every other client would have chosen."""

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from ottla.clients.failures import TopicNotFound
from ottla.clients.partitioner import partition_for_key
from ottla.errors import InvalidRecord
from ottla.records.batch import RecordBatch
from ottla.records.builder import ProducerStamp
from ottla.records.record import Record
from ottla.spark.batch_appender import sign
from ottla.spark.options import Use
from ottla.spark.row_encoder import EncodedRun, RowEncoder
from ottla.spark.sink_plan import sink_plan

SCHEMA = StructType([StructField("key", BinaryType()), StructField("value", BinaryType())])
COUNT = 5


def an_encoder(columns: tuple[str, ...], /, **options: str) -> RowEncoder:
    from dataclasses import replace

    given_options = {"kafka.bootstrap.servers": "x:1", **options}
    if "topic" not in columns:
        given_options["topic"] = "t"
    fields = [*SCHEMA, StructField("topic", StringType())]
    plan = sink_plan(Use.WRITE, given_options, StructType(fields))
    return RowEncoder(replace(plan, columns=columns), lambda topic: COUNT, 42)


def records_of(run: EncodedRun) -> list[Record]:
    records: list[Record] = []
    for batch in run.batches:
        view = RecordBatch(memoryview(batch))
        assert view.is_intact()
        records += view.records()
    assert len(records) == run.record_count
    return records


def encoded(table: pyarrow.Table, **options: str) -> dict[tuple[str, int], list[Record]]:
    found: dict[tuple[str, int], list[Record]] = {}
    encoder = an_encoder(tuple(table.column_names), **options)
    portions = list(encoder.encode(table.to_batches(max_chunksize=3)))
    for run in (run for portion in portions for run in portion):
        found.setdefault((run.where.topic, run.where.partition), []).extend(records_of(run))
    return found


@given(st.lists(st.tuples(st.binary(max_size=8), st.none() | st.binary(max_size=8))))
def test_a_key_goes_where_every_client_puts_it_and_order_is_kept(
    rows: list[tuple[bytes, bytes | None]],
) -> None:
    expected: dict[tuple[str, int], list[tuple[bytes, bytes | None]]] = {}
    for key, value in rows:
        expected.setdefault(("t", partition_for_key(key, COUNT)), []).append((key, value))
    table = pyarrow.table(
        {
            "key": pyarrow.array([key for key, _ in rows], pyarrow.binary()),
            "value": pyarrow.array([value for _, value in rows], pyarrow.binary()),
        }
    )

    found = encoded(table)

    assert {
        where: [(record.key, record.value) for record in records]
        for where, records in found.items()
    } == expected


def test_rows_without_a_key_are_spread_run_by_run() -> None:
    encoder = an_encoder(("value",))
    table = pyarrow.table({"value": [b"x"] * 4})
    partitions = {
        run.where.partition
        for _ in range(COUNT)
        for portion in encoder.encode(table.to_batches())
        for run in portion
    }
    assert partitions == set(range(COUNT))


def test_a_named_partition_wins_and_null_leaves_the_choice() -> None:
    key = b"some key"
    table = pyarrow.table(
        {
            "key": [key, key],
            "value": [b"1", b"2"],
            "partition": pyarrow.array([3, None], pyarrow.int32()),
        }
    )
    found = encoded(table)
    assert [record.value for record in found["t", 3]] == [b"1"]
    assert [record.value for record in found["t", partition_for_key(key, COUNT)]] == [b"2"]


@pytest.mark.parametrize("partition", [-1, COUNT])
def test_a_partition_that_is_not_there_is_an_error(partition: int) -> None:
    table = pyarrow.table(
        {"value": [b"1"], "partition": pyarrow.array([partition], pyarrow.int32())}
    )
    with pytest.raises(TopicNotFound, match=str(partition)):
        encoded(table)


def test_each_row_may_name_its_topic() -> None:
    table = pyarrow.table({"key": ["k"] * 3, "value": ["1", "2", "3"], "topic": ["a", "b", "a"]})
    found = encoded(table)
    by_topic = {topic: [record.value for record in rows] for (topic, _), rows in found.items()}
    assert by_topic == {"a": [b"1", b"3"], "b": [b"2"]}


def test_a_row_without_a_topic_is_an_error() -> None:
    table = pyarrow.table({"value": ["1"], "topic": pyarrow.array([None], pyarrow.string())})
    with pytest.raises(InvalidRecord, match="no topic"):
        encoded(table)


def test_headers_and_timestamps_are_kept() -> None:
    header = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))
    table = pyarrow.table(
        {
            "key": ["k", "k"],
            "value": ["1", "2"],
            "timestamp": pyarrow.array([1_000_000, None], pyarrow.timestamp("us", tz="UTC")),
            "headers": pyarrow.array([[{"key": "h", "value": b"x"}], None], header),
        }
    )
    (records,) = encoded(table).values()
    assert [record.timestamp for record in records] == [1_000, 42]
    assert [list(record.headers) for record in records] == [[("h", b"x")], []]


def test_a_signed_batch_has_its_producer_and_a_good_checksum() -> None:
    table = pyarrow.table({"key": ["k"], "value": ["1"]})
    ((run,),) = an_encoder(("key", "value"), **{"kafka.compression.type": "zstd"}).encode(
        table.to_batches()
    )
    (batch,) = run.batches

    sign(batch, ProducerStamp(7, 3, 11, is_transactional=True))

    view = RecordBatch(memoryview(batch))
    assert view.is_intact()
    assert (view.producer_id, view.producer_epoch, view.base_sequence) == (7, 3, 11)
    assert view.is_transactional
    assert [record.value for record in view.records()] == [b"1"]
