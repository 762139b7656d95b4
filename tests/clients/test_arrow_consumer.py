"""Polling whole Arrow tables, against a real broker."""

import asyncio
import time
from collections.abc import Callable

import pytest

import ottla
import ottla.aio
from ottla.clients.arrow.columns import read_schema
from ottla.clients.failures import WrongUse
from ottla.errors import CorruptBatch
from ottla.model.ids import TopicPartition
from ottla.records.batch import RecordBatch

pyarrow = pytest.importorskip("pyarrow")

WAIT_S = 30.0
NewName = Callable[[], str]
FROM_START = {"auto_offset_reset": "earliest"}


@pytest.fixture
def topic(bootstrap: str, new_name: NewName) -> str:
    name = new_name()
    with ottla.Admin(bootstrap) as admin:
        (made,) = admin.create_topics(ottla.NewTopic(name, 2))
        assert made.error is None, made.error
    return name


def produce(bootstrap: str, topic: str, count: int, *, partition: int = 0, **how: object) -> None:
    with ottla.Producer(bootstrap, **how) as producer:
        for number in range(count):
            producer.send(
                topic, b"%d" % number, partition=partition, timestamp_ms=1_000_000 + number
            )


def poll_rows(consumer: ottla.Consumer, count: int, **how: object) -> list[dict]:
    rows: list[dict] = []
    deadline = time.monotonic() + WAIT_S
    while len(rows) < count:
        table = consumer.poll_arrow(1.0, **how)
        assert table.schema == read_schema(how.get("columns", read_schema().names))
        rows += table.to_pylist()
        assert time.monotonic() < deadline, f"only {len(rows)} of {count} records came"
    return rows


def test_a_table_has_what_records_have(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap) as producer:
        producer.send(topic, b"v", b"k", partition=1, headers={"h": b"x"}, timestamp_ms=1234)
        producer.send(topic, None, None, partition=1, headers=[("h", None)], timestamp_ms=1235)
    with ottla.Consumer(bootstrap_servers=bootstrap, **FROM_START) as consumer:
        consumer.assign([TopicPartition(topic, 1)])
        first, second = poll_rows(consumer, 2)

    assert first.pop("timestamp").timestamp() == 1.234
    assert first == {
        "topic": topic,
        "partition": 1,
        "offset": 0,
        "timestamp_type": 0,
        "key": b"k",
        "value": b"v",
        "headers": [{"key": "h", "value": b"x"}],
    }
    assert (second["key"], second["value"]) == (None, None)
    assert second["headers"] == [{"key": "h", "value": None}]


def test_polls_of_tables_and_of_records_take_turns_without_loss(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, 1000, batch_size=4000)
    place = TopicPartition(topic, 0)
    seen: list[int] = []
    with ottla.Consumer(bootstrap_servers=bootstrap, **FROM_START) as consumer:
        consumer.assign([place])
        deadline = time.monotonic() + WAIT_S
        while len(seen) < 1000:
            seen += [record.offset for record in consumer.poll(1.0, max_records=7)]
            assert consumer.position(place) == len(seen)
            seen += consumer.poll_arrow(1.0, max_records=60)["offset"].to_pylist()
            assert consumer.position(place) == len(seen)
            assert time.monotonic() < deadline
    assert seen == list(range(1000))


def test_limits_of_records_and_bytes_are_kept(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, 500, batch_size=2000)
    with ottla.Consumer(bootstrap_servers=bootstrap, **FROM_START) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        sizes = []
        while sum(sizes) < 300:
            sizes.append(consumer.poll_arrow(WAIT_S, max_records=50).num_rows)
        assert max(sizes) == 50
        assert 0 < consumer.poll_arrow(WAIT_S, max_bytes=1).num_rows < 200
        with pytest.raises(WrongUse):
            consumer.poll_arrow(max_records=0)
        with pytest.raises(WrongUse, match="no column"):
            consumer.poll_arrow(columns=["colour"])


def test_a_seek_into_a_batch_cuts_what_comes_before(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, 100)
    place = TopicPartition(topic, 0)
    with ottla.Consumer(bootstrap_servers=bootstrap, **FROM_START) as consumer:
        consumer.assign([place])
        consumer.seek(place, 42)
        rows = poll_rows(consumer, 58, columns=["value", "offset"])
    assert rows == [{"value": b"%d" % n, "offset": n} for n in range(42, 100)]


def test_what_tables_returned_is_committed_and_not_read_again(
    bootstrap: str, topic: str, new_name: NewName
) -> None:
    produce(bootstrap, topic, 50)
    group = new_name()
    settings = {"bootstrap_servers": bootstrap, "group_id": group, **FROM_START}
    place = TopicPartition(topic, 0)
    with ottla.Consumer(topic, **settings, enable_auto_commit=False) as consumer:
        count = 0
        while count < 20:
            count += consumer.poll_arrow(WAIT_S, max_records=20 - count).num_rows
        consumer.commit()
        assert consumer.committed(place)[place].offset == 20
    with ottla.Consumer(topic, **settings) as consumer:
        assert [row["offset"] for row in poll_rows(consumer, 30)] == list(range(20, 50))
    with ottla.Consumer(topic, **settings) as consumer:  # closing has committed
        assert consumer.committed(place)[place].offset == 50


def test_only_committed_records_come_when_that_is_asked_for(
    bootstrap: str, topic: str, new_name: NewName
) -> None:
    with ottla.Producer(bootstrap, transactional_id=new_name()) as producer:
        for number in range(6):
            producer.begin_transaction()
            producer.send(topic, b"%d" % number, partition=0).result(WAIT_S)
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    with ottla.Consumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", **FROM_START
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert [row["value"] for row in poll_rows(consumer, 3)] == [b"0", b"2", b"4"]


def test_tables_of_several_topics_know_which_is_which(
    bootstrap: str, topic: str, new_name: NewName
) -> None:
    other = new_name()
    produce(bootstrap, topic, 5)
    produce(bootstrap, topic, 5, partition=1)
    produce(bootstrap, other, 5)
    with ottla.Consumer(bootstrap_servers=bootstrap, **FROM_START) as consumer:
        consumer.assign(
            [TopicPartition(topic, 0), TopicPartition(topic, 1), TopicPartition(other, 0)]
        )
        rows = poll_rows(consumer, 15)
    counts = dict.fromkeys(((topic, 0), (topic, 1), (other, 0)), 0)
    for row in rows:
        counts[row["topic"], row["partition"]] += 1
    assert set(counts.values()) == {5}


def test_damage_is_told_and_nothing_is_skipped(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(bootstrap, topic, 10)
    with ottla.Consumer(bootstrap_servers=bootstrap, **FROM_START) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        with monkeypatch.context() as patch:
            patch.setattr(RecordBatch, "is_intact", lambda self: False)
            with pytest.raises(CorruptBatch):
                poll_rows(consumer, 1)
        assert [row["offset"] for row in poll_rows(consumer, 10)] == list(range(10))


def test_no_records_make_an_empty_table_after_the_time(bootstrap: str, topic: str) -> None:
    with ottla.Consumer(bootstrap_servers=bootstrap, **FROM_START) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        table = consumer.poll_arrow(0.05)
    assert table.num_rows == 0
    assert table.schema == read_schema()


def test_the_asynchronous_face_does_the_same(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, 30)

    async def read() -> list[int]:
        offsets: list[int] = []
        async with ottla.aio.Consumer(bootstrap_servers=bootstrap, **FROM_START) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            async with asyncio.timeout(WAIT_S):
                while len(offsets) < 30:
                    table = await consumer.poll_arrow(max_records=11)
                    offsets += table["offset"].to_pylist()
        return offsets

    assert asyncio.run(read()) == list(range(30))
