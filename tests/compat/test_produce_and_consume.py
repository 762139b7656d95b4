"""Every real client writes and reads records of every shape."""

import time
from collections.abc import Callable

import pytest

from support.clients.aio import AioKafkaClient
from support.clients.confluent import ConfluentClient
from support.clients.face import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    Client,
    Reading,
    Received,
    Sending,
    ToSend,
)
from support.clients.kafka_python import KafkaPythonClient
from support.clients.samples import NULLS_AND_EMPTIES, text_of

NewName = Callable[[], str]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
MEGABYTE = 1 << 20
VALUE_BYTES_MAX = 10 * MEGABYTE
READERS = {
    "confluent": ConfluentClient,
    "kafka_python": KafkaPythonClient,
    "aiokafka": AioKafkaClient,
}


def same_content(sent: list[ToSend], received: list[Received]) -> bool:
    """Keys, values and headers arrive as sent, in order."""
    wished = [(record.key, record.value, record.headers) for record in sent]
    return wished == [(record.key, record.value, record.headers) for record in received]


@pytest.mark.parametrize("codec", CODECS)
def test_records_survive_every_codec_and_every_reader(
    client: Client, codec: str, bootstrap: str, new_name: NewName
) -> None:
    if codec not in client.codecs:
        pytest.skip(f"{client.name} has no {codec} here")
    topic = new_name()
    client.create_topic(topic)
    sent = [ToSend(text_of(number), key=b"%d" % number) for number in range(50)]
    offsets = client.produce(topic, sent, Sending(codec=codec))
    assert offsets == list(range(50))
    for make_reader in READERS.values():
        reader = make_reader(bootstrap)
        if codec in reader.codecs:
            assert same_content(sent, reader.consume(topic, {0: 0}, Reading(count=50)))


def test_null_and_empty_keys_and_values_stay_distinct(client: Client, new_name: NewName) -> None:
    topic = new_name()
    client.create_topic(topic)
    sent = list(NULLS_AND_EMPTIES)
    client.produce(topic, sent)
    assert same_content(sent, client.consume(topic, {0: 0}, Reading(count=len(sent))))


def test_headers_keep_order_duplicates_and_nulls(
    client: Client, bootstrap: str, new_name: NewName
) -> None:
    topic = new_name()
    client.create_topic(topic)
    headers = (("a", b"1"), ("a", b"2"), ("empty", b""), ("null", None), ("ж", b"\xff\0"))
    sent = [ToSend(b"with", headers=headers), ToSend(b"without")]
    writer = client if client.sends_null_headers else ConfluentClient(bootstrap)
    writer.produce(topic, sent)
    assert same_content(sent, client.consume(topic, {0: 0}, Reading(count=2)))


def test_create_time_is_kept_as_the_producer_gave_it(client: Client, new_name: NewName) -> None:
    topic = new_name()
    client.create_topic(topic, configs={"message.timestamp.type": "CreateTime"})
    stamps = [1_600_000_000_000, 1_600_000_000_500, 1_600_000_000_250]
    client.produce(topic, [ToSend(b"x", timestamp_ms=stamp) for stamp in stamps])
    received = client.consume(topic, {0: 0}, Reading(count=3))
    assert [record.timestamp_ms for record in received] == stamps
    assert {record.timestamp_type for record in received} == {CREATE_TIME}


def test_log_append_time_replaces_what_the_producer_gave(client: Client, new_name: NewName) -> None:
    topic = new_name()
    client.create_topic(topic, configs={"message.timestamp.type": "LogAppendTime"})
    before_ms = int(time.time() * 1000)
    stamp = before_ms - 500_000
    client.produce(topic, [ToSend(b"x", timestamp_ms=stamp) for _ in range(3)])
    received = client.consume(topic, {0: 0}, Reading(count=3))
    assert {record.timestamp_type for record in received} == {LOG_APPEND_TIME}
    assert all(record.timestamp_ms >= before_ms for record in received)


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_values_of_one_byte_to_ten_megabytes(client: Client, codec: str, new_name: NewName) -> None:
    topic = new_name()
    client.create_topic(topic, configs={"max.message.bytes": str(12 * MEGABYTE)})
    sizes = [1, 100, 1 << 14, 1 << 16, MEGABYTE, VALUE_BYTES_MAX]
    sent = [ToSend(bytes([65 + at]) * size) for at, size in enumerate(sizes)]
    how = Sending(codec=codec, request_bytes_max=12 * MEGABYTE)
    assert client.produce(topic, sent, how) == list(range(len(sizes)))
    reading = Reading(count=len(sizes), partition_bytes_max=16 * MEGABYTE)
    received = client.consume(topic, {0: 0}, reading)
    assert [len(record.value or b"") for record in received] == sizes
    assert same_content(sent, received)


def test_a_record_larger_than_the_fetch_limits_is_still_delivered(
    client: Client, new_name: NewName
) -> None:
    topic = new_name()
    client.create_topic(topic)
    sent = [ToSend(b"a" * 200_000), ToSend(b"b" * 300_000), ToSend(b"c")]
    for record in sent:
        client.produce(topic, [record])
    reading = Reading(count=3, fetch_bytes_max=1_000_000, partition_bytes_max=1_000)
    assert same_content(sent, client.consume(topic, {0: 0}, reading))


def test_many_partitions_keep_their_own_order(client: Client, new_name: NewName) -> None:
    topic, partitions, each = new_name(), 24, 20
    client.create_topic(topic, partitions=partitions)
    sent = [
        ToSend(b"%d" % number, partition=partition)
        for number in range(each)
        for partition in range(partitions)
    ]
    client.produce(topic, sent)
    starts = dict.fromkeys(range(partitions), 0)
    received = client.consume(topic, starts, Reading(count=len(sent)))
    for partition in range(partitions):
        own = [record for record in received if record.partition == partition]
        assert [record.offset for record in own] == list(range(each))
        assert [record.value for record in own] == [b"%d" % number for number in range(each)]


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_every_acks_level_stores_the_records(client: Client, acks: int, new_name: NewName) -> None:
    topic = new_name()
    client.create_topic(topic)
    sent = [ToSend(b"%d" % number) for number in range(30)]
    offsets = client.produce(topic, sent, Sending(acks=acks))
    assert offsets == ([-1] * 30 if acks == 0 else list(range(30)))
    assert same_content(sent, client.consume(topic, {0: 0}, Reading(count=30)))


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_the_idempotent_producer_writes_everything_once(
    client: Client, codec: str, new_name: NewName
) -> None:
    topic = new_name()
    client.create_topic(topic, partitions=3)
    sent = [ToSend(b"%d" % number, partition=number % 3) for number in range(600)]
    how = Sending(idempotent=True, codec=codec, linger_ms=0)
    client.produce(topic, sent, how)
    received = client.consume(topic, dict.fromkeys(range(3), 0), Reading(count=600))
    for partition in range(3):
        own = [record for record in received if record.partition == partition]
        assert [record.offset for record in own] == list(range(200))
        values = [int(record.value or b"") for record in own]
        assert values == list(range(partition, 600, 3))


def test_consuming_starts_anywhere_in_the_log(client: Client, new_name: NewName) -> None:
    topic = new_name()
    client.create_topic(topic)
    client.produce(topic, [ToSend(b"%d" % number) for number in range(100)], Sending(codec="gzip"))
    received = client.consume(topic, {0: 37}, Reading(count=63))
    assert [record.offset for record in received] == list(range(37, 100))
    assert received[0].value == b"37"


def test_offsets_by_position_and_by_timestamp(client: Client, new_name: NewName) -> None:
    topic = new_name()
    client.create_topic(topic)
    assert client.offset_range(topic, 0) == (0, 0)
    base_ms = 1_600_000_000_000
    for number in range(10):
        client.produce(topic, [ToSend(b"x", timestamp_ms=base_ms + number * 1000)])
    assert client.offset_range(topic, 0) == (0, 10)
    assert client.offset_at(topic, 0, base_ms) == 0
    assert client.offset_at(topic, 0, base_ms + 4000) == 4
    assert client.offset_at(topic, 0, base_ms + 4001) == 5
    assert client.offset_at(topic, 0, base_ms + 9001) is None


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_a_topic_that_recompresses_keeps_the_content(
    compression: str, bootstrap: str, new_name: NewName
) -> None:
    client, topic = ConfluentClient(bootstrap), new_name()
    client.create_topic(topic, configs={"compression.type": compression})
    sent = [ToSend(text_of(number), headers=(("n", b"%d" % number),)) for number in range(20)]
    client.produce(topic, sent, Sending(codec="lz4"))
    client.produce(topic, sent, Sending(codec="none"))
    assert same_content(sent + sent, client.consume(topic, {0: 0}, Reading(count=40)))
