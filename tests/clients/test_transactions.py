"""Transactions end to end: what is committed is read, what is aborted is not."""

import time
from collections.abc import Callable

import pytest

import ottla
from ottla.clients.consumer.record import ConsumerRecord
from ottla.clients.failures import WrongUse
from ottla.model.ids import TopicPartition
from support.clients.aio import AioKafkaClient

WAIT_S = 30.0
NewName = Callable[[], str]
COMMITTED = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}


@pytest.fixture
def topic(bootstrap: str, new_name: NewName) -> str:
    name = new_name()
    AioKafkaClient(bootstrap).create_topic(name, partitions=2)
    return name


class Changed(Exception):
    """The program has changed its mind."""


def abort(producer: ottla.Producer, topic: str, value: bytes) -> None:
    with producer.transaction():
        producer.send(topic, value, partition=0).result(WAIT_S)
        raise Changed


def read(bootstrap: str, topic: str, count: int, **how: str) -> list[bytes]:
    records: list[ConsumerRecord] = []
    deadline = time.monotonic() + WAIT_S
    with ottla.Consumer(bootstrap_servers=bootstrap, **{**COMMITTED, **how}) as consumer:
        consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
        while len(records) < count:
            records += consumer.poll(1.0)
            assert time.monotonic() < deadline
        records += consumer.poll(0.2)
    return [record.value for record in records]


def test_only_what_was_committed_is_read(bootstrap: str, topic: str, new_name: NewName) -> None:
    with ottla.Producer(bootstrap, transactional_id=new_name()) as producer:
        for number in range(5):
            with producer.transaction():
                producer.send(topic, b"good %d" % number, partition=0)
            with pytest.raises(Changed):
                abort(producer, topic, b"bad %d" % number)
        with producer.transaction():
            producer.send(topic, b"last", partition=0)

    assert read(bootstrap, topic, 6) == [*(b"good %d" % n for n in range(5)), b"last"]
    assert len(read(bootstrap, topic, 11, isolation_level="read_uncommitted")) == 11


def test_a_transaction_appears_all_at_once(bootstrap: str, topic: str, new_name: NewName) -> None:
    place = TopicPartition(topic, 0)
    with (
        ottla.Producer(bootstrap, transactional_id=new_name()) as producer,
        ottla.Consumer(bootstrap_servers=bootstrap, **COMMITTED) as consumer,
    ):
        consumer.assign([place])
        producer.begin_transaction()
        producer.send(topic, b"one", partition=0).result(WAIT_S)
        assert consumer.poll(0.3) == []
        assert consumer.end_offsets(place) == {place: 0}
        producer.send(topic, b"two", partition=0)
        producer.commit_transaction()
        assert [r.value for r in consumer.poll(WAIT_S)] == [b"one", b"two"]


def test_offsets_are_committed_with_the_records(
    bootstrap: str, topic: str, new_name: NewName
) -> None:
    target, group = new_name(), new_name()
    AioKafkaClient(bootstrap).create_topic(target, partitions=2)
    with ottla.Producer(bootstrap) as producer:
        for number in range(20):
            producer.send(topic, b"%d" % number, partition=number % 2)
    how = {"group_id": group, "enable_auto_commit": False, **COMMITTED}
    seen = 0
    with (
        ottla.Consumer(topic, bootstrap_servers=bootstrap, **how) as consumer,
        ottla.Producer(bootstrap, transactional_id=new_name()) as producer,
    ):
        while seen < 20:
            records = consumer.poll(WAIT_S, max_records=7)
            with producer.transaction():
                for record in records:
                    producer.send(target, record.value + b"!", partition=0)
                ends = {TopicPartition(r.topic, r.partition): r.offset + 1 for r in records}
                producer.send_offsets(ends, consumer.place)
            seen += len(records)
        places = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
        committed = consumer.committed(*places)

    assert sorted(read(bootstrap, target, 20)) == sorted(b"%d!" % n for n in range(20))
    assert [committed[place].offset for place in places] == [10, 10]


def test_records_are_sent_only_inside_a_transaction(
    bootstrap: str, topic: str, new_name: NewName
) -> None:
    with ottla.Producer(bootstrap, transactional_id=new_name()) as producer:
        with pytest.raises(WrongUse, match="begin"):
            producer.send(topic, b"v")
        with pytest.raises(WrongUse):
            producer.commit_transaction()
        producer.begin_transaction()
        with pytest.raises(WrongUse):
            producer.begin_transaction()
        producer.abort_transaction()


def test_an_empty_transaction_commits(bootstrap: str, new_name: NewName) -> None:
    with ottla.Producer(bootstrap, transactional_id=new_name()) as producer:
        with producer.transaction():
            pass
        with producer.transaction():
            pass
