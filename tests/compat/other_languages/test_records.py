"""Every client writes and reads records of every shape, and what others wrote."""

import time
from collections.abc import Callable, Sequence

import pytest

from compat.other_languages.client import OtherClient
from compat.other_languages.conftest import CLIENTS
from support.batches import Header
from support.clients.confluent import ConfluentClient
from support.clients.face import Client, Reading, Received, Sending, ToSend
from support.clients.samples import NULLS_AND_EMPTIES, text_of

NewName = Callable[[], str]

MEGABYTE = 1 << 20
FIRST_STAMP_MS = 1_600_000_000_000
EVERY_CODEC = [(name, codec) for name, own in CLIENTS.items() for codec in own.codecs]
WAYS_TO_PRODUCE = [
    (name, is_idempotent)
    for name, own in CLIENTS.items()
    for is_idempotent in sorted({False, own.has_transactions})
]

pytestmark = pytest.mark.slow


def content(records: Sequence[ToSend | Received]) -> list[tuple[object, ...]]:
    """What must arrive as it was sent."""
    return [(record.key, record.value, record.headers) for record in records]


@pytest.mark.parametrize(("client", "codec"), EVERY_CODEC, indirect=["client"])
def test_records_survive_every_codec_in_both_directions(
    client: OtherClient, codec: str, bootstrap: str, new_name: NewName
) -> None:
    python, topic = ConfluentClient(bootstrap), new_name()
    python.create_topic(topic)
    sent = [ToSend(text_of(number), key=b"%d" % number) for number in range(50)]
    how = Sending(codec=codec)
    assert client.produce(topic, sent, how) == list(range(50))
    assert python.produce(topic, sent, how) == list(range(50, 100))
    for reader in (client, python):
        received = reader.consume(topic, {0: 0}, Reading(count=100))
        assert content(received) == content(sent + sent)
        assert [record.offset for record in received] == list(range(100))


def test_null_and_empty_keys_and_values_stay_distinct(
    client: OtherClient, bootstrap: str, new_name: NewName
) -> None:
    python, topic = ConfluentClient(bootstrap), new_name()
    python.create_topic(topic)
    sent = list(NULLS_AND_EMPTIES)
    client.produce(topic, sent)
    assert content(python.consume(topic, {0: 0}, Reading(count=5))) == content(sent)
    received = content(client.consume(topic, {0: 0}, Reading(count=5)))
    if client.tells_empty_from_null:
        assert received == content(sent)
    else:
        assert received == [(key or None, value or None, ()) for key, value, _ in content(sent)]


def test_headers_keep_order_and_duplicates(
    client: OtherClient, bootstrap: str, new_name: NewName
) -> None:
    python, topic = ConfluentClient(bootstrap), new_name()
    python.create_topic(topic)
    headers: tuple[Header, ...] = (("a", b"1"), ("a", b"2"), ("ж", b"\xff\0"))
    if client.sends_null_headers:
        headers += (("null", None),)
    if client.tells_empty_from_null:
        headers += (("empty", b""),)
    sent = [ToSend(b"with", headers=headers), ToSend(b"without")]
    client.produce(topic, sent)
    assert content(python.consume(topic, {0: 0}, Reading(count=2))) == content(sent)
    assert content(client.consume(topic, {0: 0}, Reading(count=2))) == content(sent)


def test_timestamps_are_kept_and_offsets_are_found_by_them(
    client: OtherClient, new_name: NewName
) -> None:
    topic = new_name()
    client.create_topic(topic, configs={"message.timestamp.type": "CreateTime"})
    assert client.offset_range(topic, 0) == (0, 0)
    stamps = [FIRST_STAMP_MS + number * 1000 for number in range(10)]
    client.produce(topic, [ToSend(b"x", timestamp_ms=stamp) for stamp in stamps])
    received = client.consume(topic, {0: 0}, Reading(count=10))
    assert [record.timestamp_ms for record in received] == stamps
    assert client.offset_range(topic, 0) == (0, 10)
    assert client.offset_at(topic, 0, stamps[0]) == 0
    assert client.offset_at(topic, 0, stamps[4]) == 4
    assert client.offset_at(topic, 0, stamps[4] + 1) == 5
    after_the_last = client.offset_at(topic, 0, stamps[9] + 1)
    assert after_the_last in (None, 10)  # some clients answer with the end instead of nothing


@pytest.mark.parametrize(
    ("client", "codec"),
    [
        ("kafkajs", "none"),
        ("franz-go", "zstd"),
        ("sarama", "lz4"),
        ("kafka-go", "none"),
        ("java", "lz4"),
    ],
    indirect=["client"],
)
def test_values_of_one_byte_to_a_megabyte(
    client: OtherClient, codec: str, bootstrap: str, new_name: NewName
) -> None:
    python, topic = ConfluentClient(bootstrap), new_name()
    python.create_topic(topic, configs={"max.message.bytes": str(2 * MEGABYTE)})
    sizes = [1, 100, 1 << 14, 1 << 16, MEGABYTE]
    sent = [ToSend(bytes([65 + at]) * size) for at, size in enumerate(sizes)]
    for record in sent:  # each alone, so that no batch holds more than the largest
        client.produce(topic, [record], Sending(codec=codec, request_bytes_max=2 * MEGABYTE))
    reading = Reading(count=len(sizes), partition_bytes_max=4 * MEGABYTE)
    assert content(client.consume(topic, {0: 0}, reading)) == content(sent)
    assert content(python.consume(topic, {0: 0}, reading)) == content(sent)


@pytest.mark.parametrize(("client", "is_idempotent"), WAYS_TO_PRODUCE, indirect=["client"])
def test_partitions_keep_their_own_order(
    client: OtherClient, is_idempotent: bool, new_name: NewName
) -> None:
    topic = new_name()
    client.create_topic(topic, partitions=3)
    sent = [ToSend(b"%d" % number, partition=number % 3) for number in range(600)]
    offsets = client.produce(topic, sent, Sending(idempotent=is_idempotent))
    assert offsets == [number // 3 for number in range(600)]
    received = client.consume(topic, dict.fromkeys(range(3), 0), Reading(count=600))
    for partition in range(3):
        own = [record for record in received if record.partition == partition]
        assert [record.offset for record in own] == list(range(200))
        values = [int(record.value or b"") for record in own]
        assert values == list(range(partition, 600, 3))


def test_consuming_starts_anywhere_in_the_log(
    client: OtherClient, bootstrap: str, new_name: NewName
) -> None:
    python, topic = ConfluentClient(bootstrap), new_name()
    python.create_topic(topic)
    python.produce(topic, [ToSend(b"%d" % number) for number in range(100)], Sending(codec="gzip"))
    received = client.consume(topic, {0: 37}, Reading(count=63))
    assert [record.offset for record in received] == list(range(37, 100))
    assert received[0].value == b"37"


def test_a_waiting_fetch_is_answered_when_a_record_comes(
    client: OtherClient, bootstrap: str, new_name: NewName
) -> None:
    python: Client = ConfluentClient(bootstrap)
    topic = new_name()
    python.create_topic(topic)
    python.produce(topic, [ToSend(b"first")])
    wait_ms = 20_000
    with client.following(topic, {0: 0}, Reading(count=4, wait_ms_max=wait_ms)) as records:
        assert next(records).value == b"first"
        started = time.monotonic()
        for value in (b"second", b"third", b"fourth"):
            python.produce(topic, [ToSend(value)])
            assert next(records).value == value
        assert (time.monotonic() - started) * 1000 < wait_ms
