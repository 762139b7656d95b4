"""Sending whole Arrow tables, against a real broker."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ottla
import ottla.aio
from ottla.clients.failures import ClientClosed, TableNotSent, TopicNotFound, WrongUse
from ottla.clients.partitioner import partition_for_key
from ottla.errors import RecordTooLarge
from support.clients.aio import AioKafkaClient
from support.clients.confluent import ConfluentClient
from support.clients.face import Reading, Received
from support.clients.kafka_python import KafkaPythonClient
from support.record_loops import Loops, in_both_ways, using

pyarrow = pytest.importorskip("pyarrow")

PARTITIONS = 3
NewName = Callable[[], str]
HEADERS = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))


@pytest.fixture
def topic(bootstrap: str, new_name: NewName) -> str:
    name = new_name()
    with ottla.Admin(bootstrap) as admin:
        (made,) = admin.create_topics(ottla.NewTopic(name, PARTITIONS))
        assert made.error is None, made.error
    return name


def read(bootstrap: str, topic: str, count: int, library: type = AioKafkaClient) -> list[Received]:
    starts = dict.fromkeys(range(PARTITIONS), 0)
    return sorted(
        library(bootstrap).consume(topic, starts, Reading(count=count)),
        key=lambda record: (record.partition, record.offset),
    )


def numbers(records: list[Received], partition: int | None = None) -> list[int]:
    return [
        int(record.value or b"-1") for record in records if partition in (None, record.partition)
    ]


def a_table(count: int, start: int = 0, **columns: Any) -> "pyarrow.Table":
    values = [b"%06d" % number for number in range(start, start + count)]
    return pyarrow.table({"value": pyarrow.array(values, pyarrow.binary()), **columns})


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("library", [AioKafkaClient, ConfluentClient, KafkaPythonClient])
def test_others_read_what_a_table_holds_in_every_codec(
    bootstrap: str, topic: str, codec: str, library: type
) -> None:
    if codec not in library(bootstrap).codecs:
        pytest.skip(f"{library.name} has no {codec}")
    count = 100
    keys = [None if number % 4 == 0 else b"key %d" % number for number in range(count)]
    values = [None if number % 7 == 0 else b"value %d" % number for number in range(count)]
    headers = [
        [{"key": "number", "value": b"%d" % number}] if number % 3 else []
        for number in range(count)
    ]
    table = pyarrow.table(
        {
            "key": pyarrow.array(keys, pyarrow.binary()),
            "value": pyarrow.array(values, pyarrow.binary()),
            "timestamp": pyarrow.array(range(1_700_000_000_000, 1_700_000_000_000 + count)),
            "headers": pyarrow.array(headers, HEADERS),
        }
    )
    with ottla.Producer(bootstrap, compression_type=codec, batch_size=500) as producer:
        sent = producer.send_arrow(topic, table, partition=2)

    (at,) = sent.partitions
    assert (sent.topic, sent.record_count) == (topic, count)
    assert (at.partition, at.record_count) == (2, count)
    assert [(each.start, each.end) for each in at.ranges] == [(0, count)]
    found = read(bootstrap, topic, count, library)
    assert [record.key for record in found] == keys
    assert [record.value for record in found] == values
    assert [record.timestamp_ms - 1_700_000_000_000 for record in found] == list(range(count))
    assert [list(record.headers) for record in found] == [
        [(each["key"], each["value"]) for each in row] for row in headers
    ]


@pytest.mark.parametrize(
    "kind",
    [
        pyarrow.string(),
        pyarrow.large_string(),
        pyarrow.string_view(),
        pyarrow.binary(),
        pyarrow.large_binary(),
        pyarrow.binary_view(),
        pyarrow.binary(1),
        pyarrow.dictionary(pyarrow.int8(), pyarrow.string()),
    ],
    ids=str,
)
def test_every_kind_of_text_and_bytes_is_taken(
    bootstrap: str, topic: str, kind: "pyarrow.DataType"
) -> None:
    words = ["a", None, "b", "c", "a"]
    is_text = "string" in str(kind)
    column = pyarrow.array(words if is_text else [w and w.encode() for w in words], kind)
    with ottla.Producer(bootstrap) as producer:
        producer.send_arrow(topic, pyarrow.table({"value": column, "key": column}), partition=0)
    expected = [word and word.encode() for word in words]
    found = read(bootstrap, topic, len(words))
    assert [record.value for record in found] == expected
    assert [record.key for record in found] == expected


@in_both_ways
def test_rows_go_where_single_records_with_their_keys_go(
    bootstrap: str, topic: str, loops: Loops
) -> None:
    count = 300
    keys = [b"key %d" % (number % 50) for number in range(count)]
    with using(loops), ottla.Producer(bootstrap, batch_size=700) as producer:
        sent = producer.send_arrow(topic, a_table(count, key=keys))

    found = read(bootstrap, topic, count)
    assert sent.record_count == count
    for partition in range(PARTITIONS):
        expected = [n for n in range(count) if partition_for_key(keys[n], PARTITIONS) == partition]
        assert numbers(found, partition) == expected
    for each in sent.partitions:
        assert each.record_count == len(numbers(found, each.partition))


def test_rows_without_keys_are_spread_in_whole_batches(bootstrap: str, topic: str) -> None:
    count = 3000
    with ottla.Producer(bootstrap, batch_size=1000) as producer:
        sent = producer.send_arrow(topic, a_table(count))
    assert len(sent.partitions) == PARTITIONS
    found = read(bootstrap, topic, count)
    assert sorted(numbers(found)) == list(range(count))
    for each in sent.partitions:
        assert each.record_count > 200
        assert numbers(found, each.partition) == sorted(numbers(found, each.partition))


def test_a_column_says_the_partition_and_keys_say_it_where_it_does_not(
    bootstrap: str, topic: str
) -> None:
    key = b"somewhere"
    home = partition_for_key(key, PARTITIONS)
    partition = pyarrow.array([2, 0, None, 1, None, 2], pyarrow.int16())
    with ottla.Producer(bootstrap) as producer:
        producer.send_arrow(topic, a_table(6, partition=partition, key=[key] * 6))
        found = read(bootstrap, topic, 6)
        wanted: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
        for number, given in enumerate(partition.to_pylist()):
            wanted[home if given is None else given].append(number)
        assert {place: numbers(found, place) for place in wanted} == wanted

        with pytest.raises(TopicNotFound, match="partition 7"):
            producer.send_arrow(topic, a_table(2, partition=[0, 7]))
        with pytest.raises(TopicNotFound, match="partition -1"):
            producer.send_arrow(topic, a_table(2, partition=[0, -1]))
        with pytest.raises(TopicNotFound, match="partition 3"):
            producer.send_arrow(topic, a_table(2), partition=PARTITIONS)
        assert producer.metrics().records_sent == 6


def test_a_partitioner_and_ignored_keys_hold_for_tables_too(bootstrap: str, topic: str) -> None:
    def by_last_digit(_: str, key: bytes | None, value: bytes | None, count: int, /) -> int:
        assert (key, count) == (b"k", PARTITIONS)
        return int((value or b"0")[-1:]) % count

    with ottla.Producer(bootstrap, partitioner=by_last_digit) as producer:
        producer.send_arrow(topic, a_table(9, key=[b"k"] * 9))
    found = read(bootstrap, topic, 9)
    assert numbers(found, 1) == [1, 4, 7]
    with ottla.Producer(bootstrap, partitioner_ignore_keys=True, batch_size=200) as producer:
        sent = producer.send_arrow(topic, a_table(1000, key=[b"k"] * 1000))
    assert len(sent.partitions) == PARTITIONS, "no chance leaves one out of so many batches"


def test_tables_and_single_records_keep_their_order(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap, linger_ms=60_000) as producer:
        for start in range(0, 300, 100):
            for number in range(start, start + 10):
                producer.send(topic, b"%06d" % number, partition=1)
            producer.send_arrow(topic, a_table(90, start + 10), partition=1)
    assert numbers(read(bootstrap, topic, 300)) == list(range(300))


def test_a_transaction_holds_tables_and_records_together(
    bootstrap: str, topic: str, new_name: NewName
) -> None:
    with ottla.Producer(bootstrap, transactional_id=new_name()) as producer:
        with pytest.raises(WrongUse):
            producer.send_arrow(topic, a_table(1))
        with producer.transaction():
            producer.send(topic, b"000000", partition=0)
            producer.send_arrow(topic, a_table(9, 1), partition=0)
        producer.begin_transaction()
        producer.send_arrow(topic, a_table(50, 500), partition=0)
        producer.abort_transaction()
        with producer.transaction():
            producer.send_arrow(topic, a_table(10, 10), partition=0)
    with ottla.Consumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([ottla.TopicPartition(topic, 0)])
        seen: list[int] = []
        while len(seen) < 20:
            seen += [int(record.value) for record in consumer.poll(30)]
    assert seen == list(range(20))


def test_a_stream_of_batches_passes_through_little_memory(bootstrap: str, topic: str) -> None:
    rows, rounds = 1000, 40
    batch = pyarrow.record_batch({"value": pyarrow.array([b"x" * 100] * rows)})
    high = 0

    def stream() -> Iterator["pyarrow.RecordBatch"]:
        nonlocal high
        for _ in range(rounds):
            high = max(high, producer.metrics().buffered_bytes)
            yield batch

    with ottla.Producer(bootstrap, buffer_memory=100_000, batch_size=20_000) as producer:
        reader = pyarrow.RecordBatchReader.from_batches(batch.schema, stream())
        sent = producer.send_arrow(topic, reader)
        assert producer.metrics().batches_sent >= rows * rounds * 100 / 20_000
    assert sent.record_count == rows * rounds
    assert high <= 100_000


def test_many_small_chunks_become_few_batches(bootstrap: str, topic: str) -> None:
    table = pyarrow.concat_tables([a_table(10, start) for start in range(0, 2000, 10)])
    assert table["value"].num_chunks == 200
    with ottla.Producer(bootstrap) as producer:
        producer.send_arrow(topic, table, partition=0)
        assert producer.metrics().batches_sent == 1
    assert numbers(read(bootstrap, topic, 2000)) == list(range(2000))


def test_batches_too_large_for_the_topic_are_sent_in_parts(
    bootstrap: str, new_name: NewName
) -> None:
    name = new_name()
    with ottla.Admin(bootstrap) as admin:
        admin.create_topics(ottla.NewTopic(name, 1, configs={"max.message.bytes": "5000"}))
    with ottla.Producer(bootstrap) as producer:
        sent = producer.send_arrow(name, a_table(2000))
    assert sent.record_count == 2000
    assert [(each.start, each.end) for each in sent.partitions[0].ranges] == [(0, 2000)]
    with ottla.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([ottla.TopicPartition(name, 0)])
        seen: list[int] = []
        while len(seen) < 2000:
            seen += [int(record.value) for record in consumer.poll(30)]
    assert seen == list(range(2000))


def test_a_record_that_is_too_large_stops_the_table_and_says_what_was_sent(
    bootstrap: str, topic: str
) -> None:
    values = pyarrow.array([b"a", b"b", b"x" * 3000, b"c"])
    with ottla.Producer(bootstrap, max_request_size=2000, batch_size=70) as producer:
        with pytest.raises(TableNotSent) as caught:
            producer.send_arrow(topic, pyarrow.table({"value": values}), partition=0)
        assert isinstance(caught.value.cause, RecordTooLarge)
        assert caught.value.sent.record_count == 2
        with pytest.raises(RecordTooLarge):
            producer.send_arrow(topic, pyarrow.table({"value": values.slice(2)}), partition=0)
        assert producer.send_arrow(topic, a_table(1), partition=0).record_count == 1


def test_without_acknowledgements_nobody_knows_the_offsets(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap) as producer:  # from then on the broker surely has the topic
        producer.send_arrow(topic, a_table(2), partition=0)
    with ottla.Producer(bootstrap, acks="0") as producer:
        sent = producer.send_arrow(topic, a_table(5, 2), partition=0)
    assert (sent.record_count, sent.partitions[0].ranges) == (5, ())
    assert numbers(read(bootstrap, topic, 7)) == list(range(7))


def test_a_table_that_was_read_can_be_sent_on(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap) as producer:
        producer.send_arrow(topic, a_table(5, timestamp=[1, 2, 3, None, 5]), partition=1)
        with ottla.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([ottla.TopicPartition(topic, 1)])
            table = consumer.poll_arrow(30)
        sent = producer.send_arrow(topic, table)
    assert [each.partition for each in sent.partitions] == [1]
    assert numbers(read(bootstrap, topic, 10)) == [*range(5), *range(5)]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"value": [1, 2]}, "the column value is of type int64"),
        ({"key": ["a"], "colour": ["red"]}, "colour"),
        ({"headers": [[]]}, "value, or key"),
        ({"value": ["a"], "timestamp": ["noon"]}, "the column timestamp"),
        ({"value": ["a"], "partition": [0.5]}, "the column partition"),
        ({"value": ["a"], "headers": ["h"]}, "the column headers"),
    ],
)
def test_what_cannot_become_records_is_refused_in_words(
    bootstrap: str, topic: str, columns: dict[str, list], words: str
) -> None:
    with ottla.Producer(bootstrap) as producer:
        with pytest.raises(WrongUse, match=words):
            producer.send_arrow(topic, pyarrow.table(columns))
        with pytest.raises(WrongUse, match="not a list"):
            producer.send_arrow(topic, [b"a"])  # type: ignore[arg-type]
        assert producer.send_arrow(topic, a_table(0)).record_count == 0
    with pytest.raises(ClientClosed):
        producer.send_arrow(topic, a_table(1))


def test_the_asynchronous_face_does_the_same(bootstrap: str, topic: str) -> None:
    async def send() -> int:
        async with ottla.aio.Producer(bootstrap, buffer_memory=50_000) as producer:
            tables = [a_table(4000, start, key=[b"k"] * 4000) for start in (0, 4000)]
            sent = [await producer.send_arrow(topic, table) for table in tables]
            with pytest.raises(WrongUse, match="int64"):
                await producer.send_arrow(topic, pyarrow.table({"value": [1]}))
        return sum(each.record_count for each in sent)

    assert asyncio.run(send()) == 8000
    assert numbers(read(bootstrap, topic, 8000)) == list(range(8000))


@in_both_ways
@pytest.mark.parametrize(
    "settings",
    [{"acks": "all"}, {"acks": "1"}, {"acks": "0"}, {"acks": "all", "enable_idempotence": False}],
    ids=["idempotent", "acks=1", "acks=0", "not idempotent"],
)
def test_tables_larger_than_the_buffer_arrive_whole_one_after_the_other(
    bootstrap: str, topic: str, loops: Loops, settings: dict[str, Any]
) -> None:
    """Batches take the memory of those before them, and not before those are sent."""
    tables = [
        pyarrow.table({"value": [bytes([65 + number]) * 1000 for _ in range(2000)]})
        for number in range(6)
    ]
    with (
        using(loops),
        ottla.Producer(bootstrap, buffer_memory=3_000_000, **settings) as producer,
    ):
        for table in tables:
            assert producer.send_arrow(topic, table, partition=1).record_count == 2000
    found = read(bootstrap, topic, 12_000)
    assert [record.value for record in found] == [
        value.as_py() for table in tables for value in table["value"]
    ]
