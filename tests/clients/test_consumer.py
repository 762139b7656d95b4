"""The consumer with partitions it was told to read, against a real broker."""

import asyncio
import time
from collections.abc import Callable
from itertools import islice

import pytest

import ottla
import ottla.aio
from ottla.clients.consumer.record import ConsumerRecord
from ottla.clients.failures import ClientClosed, NoCommittedOffset, WrongUse
from ottla.model.ids import TopicPartition
from support.clients.aio import AioKafkaClient
from support.clients.confluent import ConfluentClient
from support.clients.face import Sending, ToSend
from support.clients.kafka_python import KafkaPythonClient

WAIT_S = 30.0
NewName = Callable[[], str]
FROM_START = {"auto_offset_reset": "earliest"}


@pytest.fixture
def topic(bootstrap: str, new_name: NewName) -> str:
    name = new_name()
    AioKafkaClient(bootstrap).create_topic(name, partitions=2)
    return name


def produce(bootstrap: str, topic: str, count: int, *, partition: int = 0, start: int = 0) -> None:
    with ottla.Producer(bootstrap) as producer:
        for number in range(start, start + count):
            producer.send(
                topic, b"%d" % number, partition=partition, timestamp_ms=1_000_000 + number
            )


def poll_many(consumer: ottla.Consumer, count: int) -> list[ConsumerRecord]:
    records: list[ConsumerRecord] = []
    deadline = time.monotonic() + WAIT_S
    while len(records) < count:
        records += consumer.poll(1.0)
        assert time.monotonic() < deadline, f"only {len(records)} of {count} records came"
    return records


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("library", [AioKafkaClient, ConfluentClient, KafkaPythonClient])
def test_it_reads_what_others_write_in_every_codec(
    bootstrap: str, topic: str, codec: str, library: type
) -> None:
    client = library(bootstrap)
    if codec not in client.codecs:
        pytest.skip(f"{client.name} has no {codec}")
    sent = [
        ToSend(
            value=None if number % 10 == 5 else b"value %d" % number,
            key=b"key %d" % number if number % 2 else None,
            headers=(("number", b"%d" % number),) if number % 3 else (),
            timestamp_ms=1_700_000_000_000 + number,
        )
        for number in range(60)
    ]
    client.produce(topic, sent, Sending(codec=codec))
    with ottla.Consumer(bootstrap_servers=bootstrap, **FROM_START) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        records = poll_many(consumer, 60)

    found = [ToSend(r.value, r.key, r.headers, r.timestamp_ms, r.partition) for r in records]
    assert found == sent
    assert [record.offset for record in records] == list(range(60))


def test_the_end_is_the_default_and_the_beginning_can_be_chosen(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, 5)
    place = TopicPartition(topic, 0)
    with ottla.Consumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign([place])
        assert consumer.position(place) == 5
        consumer.seek_to_beginning()
        assert consumer.position(place) == 0
        consumer.seek_to_end(place)
        assert consumer.position(place) == 5


def test_seek_moves_and_forgets_what_was_fetched(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, 1000)
    place = TopicPartition(topic, 0)
    with ottla.Consumer(bootstrap_servers=bootstrap, **FROM_START) as consumer:
        consumer.assign([place])
        assert consumer.poll(WAIT_S, max_records=10)[-1].offset == 9
        consumer.seek(place, 700)
        assert consumer.poll(WAIT_S, max_records=1)[0].offset == 700
        consumer.seek(place, 3)
        assert [r.offset for r in consumer.poll(WAIT_S, max_records=2)] == [3, 4]
        assert consumer.position(place) == 5


def test_an_offset_out_of_range_goes_by_the_policy(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, 10)
    place = TopicPartition(topic, 0)
    with ottla.Consumer(bootstrap_servers=bootstrap, **FROM_START) as consumer:
        consumer.assign([place])
        consumer.seek(place, 5000)
        assert poll_many(consumer, 10)[0].offset == 0


def test_without_a_policy_a_missing_position_is_an_error(bootstrap: str, topic: str) -> None:
    with ottla.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="none") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        with pytest.raises(NoCommittedOffset, match=topic):
            consumer.poll(WAIT_S)
        consumer.seek(TopicPartition(topic, 0), 0)
        assert consumer.poll(0.1) == []


def test_offsets_are_found_by_time(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, 20)
    place, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with ottla.Consumer(bootstrap_servers=bootstrap) as consumer:
        found = consumer.offsets_for_times({place: 1_000_007, other: 5})
        assert found[place] is not None
        assert (found[place].offset, found[place].timestamp_ms) == (7, 1_000_007)
        assert found[other] is None
        assert consumer.beginning_offsets(place, other) == {place: 0, other: 0}
        assert consumer.end_offsets(place, other) == {place: 20, other: 0}


def test_paused_partitions_are_passed_over(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, 10, partition=0)
    produce(bootstrap, topic, 10, partition=1)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with ottla.Consumer(bootstrap_servers=bootstrap, **FROM_START) as consumer:
        consumer.assign([first, second])
        consumer.pause(first)
        assert consumer.paused == {first}
        assert {record.partition for record in poll_many(consumer, 10)} == {1}
        assert consumer.poll(0.2) == []
        consumer.resume(first)
        assert {record.partition for record in poll_many(consumer, 10)} == {0}


def test_lag_and_metrics_tell_how_far_it_is(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, 100)
    place = TopicPartition(topic, 0)
    with ottla.Consumer(bootstrap_servers=bootstrap, **FROM_START) as consumer:
        consumer.assign([place])
        consumer.poll(WAIT_S, max_records=30)
        metrics = consumer.metrics()
        assert consumer.lag(place) == 70

    assert metrics.records_returned == 30
    assert metrics.lag_total == 70
    assert metrics.bytes_fetched > 0


def test_what_is_fetched_ahead_is_bounded(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap) as producer:
        for _ in range(400):
            producer.send(topic, b"x" * 10_000, partition=0)
    with ottla.Consumer(
        bootstrap_servers=bootstrap, max_partition_fetch_bytes=100_000, **FROM_START
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        largest = count = 0
        while count < 400:
            count += len(consumer.poll(WAIT_S, max_records=5))
            largest = max(largest, consumer.metrics().buffered_bytes)

    assert largest <= 4 * 140_000


def test_deserializers_make_objects(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap, key_serializer=str, value_serializer="json") as producer:
        producer.send(topic, {"n": 1}, "key", partition=0)
    with ottla.Consumer(
        bootstrap_servers=bootstrap, key_deserializer=str, value_deserializer="json", **FROM_START
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        (record,) = poll_many(consumer, 1)

    assert (record.key, record.value) == ("key", {"n": 1})


def test_both_faces_iterate(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, 3)
    values = []
    with ottla.Consumer(bootstrap_servers=bootstrap, **FROM_START) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        for record in consumer:
            values.append(record.value)
            if len(values) == 3:
                break

    async def main() -> list[bytes]:
        found = []
        async with ottla.aio.Consumer(bootstrap_servers=bootstrap, **FROM_START) as reader:
            reader.assign([TopicPartition(topic, 0)])
            async for record in reader:
                found.append(record.value)
                if len(found) == 3:
                    break
        return found

    assert values == asyncio.run(main()) == [b"0", b"1", b"2"]


def test_a_poll_waits_for_records_and_not_longer(bootstrap: str, topic: str) -> None:
    place = TopicPartition(topic, 0)
    with ottla.Consumer(bootstrap_servers=bootstrap, **FROM_START) as consumer:
        consumer.assign([place])
        assert consumer.poll(0.0) == []
        consumer.position(place)
        produce(bootstrap, topic, 1)
        assert len(consumer.poll(WAIT_S)) == 1


def test_wrong_uses_are_told(bootstrap: str, topic: str) -> None:
    with ottla.Consumer(bootstrap_servers=bootstrap) as consumer:
        with pytest.raises(WrongUse, match="assign"):
            consumer.poll(0)
        with pytest.raises(WrongUse, match="group_id"):
            consumer.subscribe([topic])
        with pytest.raises(WrongUse, match="not assigned"):
            consumer.seek(TopicPartition(topic, 0), 0)
        with pytest.raises(WrongUse, match="group_id"):
            consumer.commit()
    with pytest.raises(ClientClosed):
        consumer.poll(0)


def test_a_loop_goes_on_where_another_stopped(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, 10)
    with ottla.Consumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        first = [next(consumer).offset, next(consumer).offset]
        for record in consumer:
            first.append(record.offset)
            if record.offset == 5:
                break
        rest = [record.offset for record in islice(consumer, 4)]

    assert first == [0, 1, 2, 3, 4, 5]
    assert rest == [6, 7, 8, 9]
