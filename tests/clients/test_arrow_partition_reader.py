"""Reading a range of one partition as Arrow record batches, against a real broker."""

import threading
from collections.abc import Callable

import pytest

import ottla
from ottla.clients.arrow.columns import COLUMNS, read_schema
from ottla.clients.arrow.partition_reader import PartitionReader
from ottla.clients.failures import ClientClosed, NoBrokerReachable, RecordsGone, WrongUse
from ottla.errors import OffsetOutOfRange, TimedOut
from ottla.model.ids import TopicPartition

pyarrow = pytest.importorskip("pyarrow")

NewName = Callable[[], str]


@pytest.fixture
def place(bootstrap: str, new_name: NewName) -> TopicPartition:
    name = new_name()
    with ottla.Admin(bootstrap) as admin:
        (made,) = admin.create_topics(ottla.NewTopic(name, 2))
        assert made.error is None, made.error
    return TopicPartition(name, 1)


def produce(bootstrap: str, place: TopicPartition, numbers: range, **settings: object) -> None:
    with ottla.Producer(bootstrap, **settings) as producer:
        for number in numbers:
            producer.send(
                place.topic,
                b"value %d" % number,
                b"key %d" % number if number % 2 else None,
                partition=place.partition,
                headers={"number": b"%d" % number} if number % 3 == 0 else (),
                timestamp_ms=1_700_000_000_000 + number,
            )


def read(bootstrap: str, place: TopicPartition, start: int, end: int, **how: object) -> list[dict]:
    with PartitionReader(place, start, end, bootstrap_servers=bootstrap, **how) as reader:
        rows: list[dict] = []
        for batch in reader:
            assert batch.schema == reader.schema
            rows += batch.to_pylist()
    return rows


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_range_is_read_from_its_first_to_its_last_record(
    bootstrap: str, place: TopicPartition, codec: str
) -> None:
    produce(bootstrap, place, range(500), compression_type=codec, batch_size=1000)

    rows = read(bootstrap, place, 13, 487)

    assert [row["offset"] for row in rows] == list(range(13, 487))
    for row in rows:
        number = row["offset"]
        assert row["topic"] == place.topic
        assert row["partition"] == 1
        assert row["value"] == b"value %d" % number
        assert row["key"] == (b"key %d" % number if number % 2 else None)
        assert row["timestamp"].timestamp() * 1000 == 1_700_000_000_000 + number
        assert row["timestamp_type"] == 0
        wanted = [{"key": "number", "value": b"%d" % number}] if number % 3 == 0 else []
        assert row["headers"] == wanted


def test_many_small_answers_make_the_same_range(bootstrap: str, place: TopicPartition) -> None:
    produce(bootstrap, place, range(2000), batch_size=500)
    rows = read(
        bootstrap, place, 1, 1999, max_partition_fetch_bytes=3000, columns=["offset", "value"]
    )
    assert rows == [{"offset": n, "value": b"value %d" % n} for n in range(1, 1999)]


@pytest.mark.parametrize("columns", [["value"], ["topic"], ["headers", "topic"], list(COLUMNS)])
def test_only_the_columns_that_were_asked_for_come_in_their_order(
    bootstrap: str, place: TopicPartition, columns: list[str]
) -> None:
    produce(bootstrap, place, range(10))
    whole = read(bootstrap, place, 0, 10)
    rows = read(bootstrap, place, 0, 10, columns=columns)
    assert rows == [{name: row[name] for name in columns} for row in whole]
    assert read_schema(columns).names == columns


def test_an_empty_range_has_no_batches(bootstrap: str, place: TopicPartition) -> None:
    assert read(bootstrap, place, 5, 5) == []


def test_offsets_that_the_log_has_not_any_more_are_an_error_that_says_so(
    bootstrap: str, place: TopicPartition
) -> None:
    produce(bootstrap, place, range(20))
    with ottla.Admin(bootstrap) as admin:
        admin.delete_records(place.topic, {place.partition: 7})

    with pytest.raises(RecordsGone) as caught:
        read(bootstrap, place, 3, 20)
    assert isinstance(caught.value, OffsetOutOfRange)
    assert caught.value.partition == place
    assert (caught.value.offset, caught.value.start, caught.value.end) == (3, 7, 20)
    assert str(place) in str(caught.value)
    with pytest.raises(RecordsGone):
        read(bootstrap, place, 25, 30)
    assert len(read(bootstrap, place, 7, 20)) == 13


def test_an_end_that_is_not_there_yet_is_waited_for_and_then_given_up(
    bootstrap: str, place: TopicPartition
) -> None:
    produce(bootstrap, place, range(5))
    with pytest.raises(TimedOut, match="offset 5"):
        read(bootstrap, place, 0, 9, default_api_timeout_ms=300, fetch_max_wait_ms=50)

    found: list[dict] = []
    reading = threading.Thread(target=lambda: found.extend(read(bootstrap, place, 0, 9)))
    reading.start()
    produce(bootstrap, place, range(5, 9))
    reading.join(60)
    assert [row["offset"] for row in found] == list(range(9))


def test_aborted_transactions_and_markers_are_left_out(
    bootstrap: str, place: TopicPartition, new_name: NewName
) -> None:
    with ottla.Producer(bootstrap, transactional_id=new_name()) as producer:
        for number in range(4):
            producer.begin_transaction()
            producer.send(place.topic, b"%d" % number, partition=place.partition).result(30)
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()

    committed = read(bootstrap, place, 0, 8, read_committed=True)
    assert [(row["offset"], row["value"]) for row in committed] == [(0, b"0"), (4, b"2")]
    by_its_name = read(bootstrap, place, 0, 8, isolation_level="read_committed")
    assert by_its_name == committed
    everything = read(bootstrap, place, 0, 8)
    assert [row["value"] for row in everything] == [b"0", b"1", b"2", b"3"]


def test_a_reader_that_is_closed_half_way_leaves_no_thread(
    bootstrap: str, place: TopicPartition
) -> None:
    produce(bootstrap, place, range(1000), batch_size=1000)
    before = threading.active_count()
    reader = PartitionReader(
        place, 0, 1000, bootstrap_servers=bootstrap, max_partition_fetch_bytes=1000
    )
    next(iter(reader))
    reader.close()
    reader.close()
    assert threading.active_count() == before
    with pytest.raises(ClientClosed):
        next(iter(reader))


def test_bad_questions_are_refused_in_words(bootstrap: str, place: TopicPartition) -> None:
    with pytest.raises(WrongUse, match=r"\[5, 3\)"):
        PartitionReader(place, 5, 3, bootstrap_servers=bootstrap)
    with pytest.raises(WrongUse, match="no column 'colour'"):
        PartitionReader(place, 0, 3, bootstrap_servers=bootstrap, columns=["colour"])
    with pytest.raises(ottla.OttlaError, match="boot_strap"):
        PartitionReader(place, 0, 3, boot_strap=bootstrap)
    with pytest.raises(ottla.OttlaError, match="there is no"):
        read(bootstrap, TopicPartition(place.topic, 7), 0, 3)
    with pytest.raises(NoBrokerReachable):
        read("127.0.0.1:1", place, 0, 3)
