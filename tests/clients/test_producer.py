"""The producer against a real broker; others read back what it wrote."""

import asyncio
import itertools
from collections.abc import Callable
from functools import partial

import pytest

import ottla
import ottla.aio
from ottla.clients.failures import ClientClosed, SerializationFailed, TopicNotFound
from ottla.clients.partitioner import partition_for_key
from ottla.clients.producer.interceptors import OutgoingRecord
from ottla.errors import RecordTooLarge
from support.clients.aio import AioKafkaClient
from support.clients.face import Reading, Received

WAIT_S = 30.0
NewName = Callable[[], str]


@pytest.fixture
def topic(bootstrap: str, new_name: NewName) -> str:
    name = new_name()
    AioKafkaClient(bootstrap).create_topic(name, partitions=3)
    return name


def read(bootstrap: str, topic: str, count: int, partitions: int = 3) -> list[Received]:
    starts = dict.fromkeys(range(partitions), 0)
    return AioKafkaClient(bootstrap).consume(topic, starts, Reading(count=count))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_others_read_what_it_writes_in_every_codec(bootstrap: str, topic: str, codec: str) -> None:
    with ottla.Producer(bootstrap, compression_type=codec) as producer:
        for number in range(300):
            producer.send(
                topic,
                b"value %d" % number,
                b"key %d" % number if number % 2 else None,
                partition=1,
                headers={"number": b"%d" % number, "none": None} if number % 3 else (),
                timestamp_ms=1_700_000_000_000 + number,
            )
    received = read(bootstrap, topic, 300)

    assert [record.value for record in received] == [b"value %d" % n for n in range(300)]
    assert received[1].key == b"key 1"
    assert received[2].key is None
    assert received[1].headers == (("number", b"1"), ("none", None))
    assert received[3].headers == ()
    assert received[5].timestamp_ms == 1_700_000_000_005


def test_nulls_stay_nulls(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap) as producer:
        producer.send(topic, None, b"key", partition=0).result(WAIT_S)
        producer.send(topic, b"", b"", partition=0).result(WAIT_S)
    received = read(bootstrap, topic, 2)

    assert [(record.key, record.value) for record in received] == [(b"key", None), (b"", b"")]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_a_delivery_tells_where_the_record_is(bootstrap: str, topic: str, acks: str) -> None:
    with ottla.Producer(bootstrap, acks=acks) as producer:
        first = producer.send(topic, b"a", partition=2).result(WAIT_S)
        second = producer.send(topic, b"b", partition=2).result(WAIT_S)

    assert (first.topic, first.partition) == (topic, 2)
    assert [first.offset, second.offset] == ([-1, -1] if acks == "0" else [0, 1])


def test_keys_go_where_java_puts_them(bootstrap: str, topic: str) -> None:
    keys = [b"key-%d" % number for number in range(50)]
    with ottla.Producer(bootstrap) as producer:
        deliveries = [producer.send(topic, b"v", key) for key in keys]
        places = [delivery.result(WAIT_S).partition for delivery in deliveries]

    assert places == [partition_for_key(key, 3) for key in keys]


def test_records_without_a_key_fill_one_partition_at_a_time(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap, batch_size=16_384, linger_ms=1000) as producer:
        deliveries = [producer.send(topic, b"x" * 1000) for _ in range(60)]
        producer.flush()
        places = [delivery.result().partition for delivery in deliveries]
    changes = sum(1 for one, other in itertools.pairwise(places) if one != other)

    assert len(set(places)) > 1
    assert changes <= 8


def test_a_partitioner_of_ones_own_decides(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap, partitioner=lambda t, k, v, count: count - 1) as producer:
        assert producer.send(topic, b"v", b"k").result(WAIT_S).partition == 2


def test_serializers_make_bytes(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap, key_serializer="str", value_serializer="json") as producer:
        producer.send(topic, {"a": 1}, "key", partition=0).result(WAIT_S)
    (record,) = read(bootstrap, topic, 1)

    assert (record.key, record.value) == (b"key", b'{"a":1}')


class Encoded(bytes):
    """Bytes with a name, as numpy and others have them."""


@pytest.mark.parametrize("kind", [Encoded, bytearray, memoryview])
def test_what_is_like_bytes_is_sent_as_bytes(
    bootstrap: str, topic: str, kind: Callable[[bytes], object]
) -> None:
    with ottla.Producer(bootstrap) as plain:
        plain.send(topic, kind(b"value"), kind(b"key"), partition=0).result(WAIT_S)
    made = partial(kind)  # a class of its own would name a serializer
    with ottla.Producer(bootstrap, key_serializer=made, value_serializer=made) as serializing:
        serializing.send(topic, b"value", b"key", partition=0).result(WAIT_S)

    for record in read(bootstrap, topic, 2):
        assert (record.key, record.value) == (b"key", b"value")


def test_a_serializer_that_gives_no_bytes_is_named_and_harms_no_other_record(
    bootstrap: str, topic: str
) -> None:
    with ottla.Producer(bootstrap, value_serializer=lambda given: given) as producer:
        first = producer.send(topic, b"first", partition=0)
        with pytest.raises(SerializationFailed, match="its serializer gave str, and must give byt"):
            producer.send(topic, "text", partition=0)
        last = producer.send(topic, b"last", partition=0)
        assert last.result(WAIT_S).offset == first.result(WAIT_S).offset + 1


def test_interceptors_see_and_change_records(bootstrap: str, topic: str) -> None:
    class Marking:
        def __init__(self) -> None:
            self.heard: list[int] = []

        def on_send(self, record: OutgoingRecord) -> OutgoingRecord:
            return OutgoingRecord(record.topic, record.value + b"!", partition=1)

        def on_acknowledgement(self, metadata: object, error: object) -> None:
            self.heard.append(metadata.partition)

    marking = Marking()
    with ottla.Producer(bootstrap, interceptors=[marking]) as producer:
        producer.send(topic, b"v")
    (record,) = read(bootstrap, topic, 1)

    assert (record.value, record.partition) == (b"v!", 1)
    assert marking.heard == [1]


def test_a_callback_hears_of_every_record(bootstrap: str, topic: str) -> None:
    heard: list[int] = []
    with ottla.Producer(bootstrap) as producer:
        for _ in range(10):
            producer.send(
                topic,
                b"v",
                partition=0,
                on_delivery=lambda found, error: heard.append(found.offset),
            )

    assert heard == list(range(10))


def test_close_sends_what_waits(bootstrap: str, topic: str) -> None:
    producer = ottla.Producer(bootstrap, linger_ms=60_000)
    delivery = producer.send(topic, b"v")
    producer.close()

    assert delivery.result(0).offset == 0


def test_a_closed_producer_says_so(bootstrap: str, topic: str) -> None:
    producer = ottla.Producer(bootstrap)
    producer.close()
    producer.close()

    with pytest.raises(ClientClosed):
        producer.send(topic, b"v")
    with pytest.raises(ClientClosed):
        producer.flush()


def test_a_record_that_is_too_large_is_refused_at_once(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap, max_request_size=1000) as producer:
        with pytest.raises(RecordTooLarge):
            producer.send(topic, b"x" * 1001)
        assert producer.send(topic, b"x").result(WAIT_S).offset == 0


def test_a_partition_that_is_not_there_is_refused(bootstrap: str, topic: str) -> None:
    with (
        ottla.Producer(bootstrap, max_block_ms=300) as producer,
        pytest.raises(TopicNotFound, match="17"),
    ):
        producer.send(topic, b"v", partition=17)


def test_a_batch_the_topic_finds_too_large_is_cut(bootstrap: str, new_name: NewName) -> None:
    name = new_name()
    AioKafkaClient(bootstrap).create_topic(name, configs={"max.message.bytes": "2000"})
    with ottla.Producer(bootstrap, linger_ms=100) as producer:
        deliveries = [producer.send(name, b"%03d" % number * 100) for number in range(50)]
        producer.flush()
        offsets = [delivery.result().offset for delivery in deliveries]
    values = [record.value for record in read(bootstrap, name, 50, partitions=1)]

    assert offsets == list(range(50))
    assert values == [b"%03d" % number * 100 for number in range(50)]


def test_metrics_count(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap) as producer:
        for _ in range(10):
            producer.send(topic, b"v", partition=0)
        producer.flush()
        metrics = producer.metrics()

    assert metrics.records_sent == 10
    assert metrics.buffered_bytes == 0
    assert metrics.request_latency_max_ms > 0


def test_the_asynchronous_face_does_the_same(bootstrap: str, topic: str) -> None:
    async def main() -> list[int]:
        async with ottla.aio.Producer(bootstrap) as producer:
            deliveries = [await producer.send(topic, b"%d" % n, partition=0) for n in range(100)]
            await producer.flush()
            waited = await producer.send_and_wait(topic, b"last", partition=0)
            return [(await delivery).offset for delivery in deliveries] + [waited.offset]

    assert asyncio.run(main()) == list(range(101))
    assert [record.value for record in read(bootstrap, topic, 101)][-1] == b"last"


def test_send_waits_for_memory_and_goes_on(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap, buffer_memory=40_000, linger_ms=0) as producer:
        deliveries = [producer.send(topic, b"x" * 1000, partition=0) for _ in range(500)]
        producer.flush()

    assert [delivery.result().offset for delivery in deliveries] == list(range(500))
