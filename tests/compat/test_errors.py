"""What clients are told when something cannot be: error codes, and messages with a reason."""

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from support.batches import batch
from support.clients.confluent import WAIT_SECONDS_MAX, ConfluentClient
from support.clients.face import Client, ToSend
from support.eventually import eventually
from support.requests import (
    LATEST,
    FetchPlace,
    TopicWish,
    a_topic,
    await_leader,
    create_topics,
    fetch_one,
    list_offset,
    metadata,
    produce,
)
from support.wire import Connection

NewName = Callable[[], str]

UNKNOWN_TOPIC_OR_PARTITION, MESSAGE_TOO_LARGE, INVALID_TOPIC = 3, 10, 17
INVALID_TIMESTAMP, TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS, INVALID_CONFIG = 32, 36, 37, 40


def test_unknown_topics_and_partitions_are_named_so(
    connection: Connection, new_name: NewName
) -> None:
    missing, topic = new_name(), a_topic(connection, new_name())
    assert metadata(connection, [missing]).topics[missing] == (UNKNOWN_TOPIC_OR_PARTITION, {})
    for place in ((missing, 0), (topic, 5)):
        answer = produce(connection, {place: batch([b"x"])})
        assert answer[place].error_code == UNKNOWN_TOPIC_OR_PARTITION
        fetched = fetch_one(connection, FetchPlace(*place, offset=0))
        assert fetched.error_code == UNKNOWN_TOPIC_OR_PARTITION
        assert list_offset(connection, place, LATEST).error_code == UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    "name", ["", ".", "..", "has space", "slash/ed", "ünïcode", "x" * 250, "new\nline", "nul\0"]
)
def test_illegal_topic_names_are_refused(connection: Connection, name: str) -> None:
    assert create_topics(connection, TopicWish(name)) == {name: INVALID_TOPIC}


@pytest.mark.parametrize("name", ["y" * 249, "dots.and_under-scores", "0"])
def test_odd_but_legal_topic_names_are_taken(connection: Connection, name: str) -> None:
    assert create_topics(connection, TopicWish(name))[name] in (0, TOPIC_ALREADY_EXISTS)
    assert produced_eventually(connection, name)


def produced_eventually(connection: Connection, topic: str) -> bool:
    await_leader(connection, (topic, 0))
    return produce(connection, {(topic, 0): batch([b"x"])})[topic, 0].error_code == 0


def test_each_topic_of_a_request_gets_its_own_answer(
    connection: Connection, new_name: NewName
) -> None:
    existing, good, bad = a_topic(connection, new_name()), new_name(), new_name()
    errors = create_topics(
        connection,
        TopicWish(existing),
        TopicWish(good),
        TopicWish(bad, configs=(("retention.ms", "soon"),)),
        TopicWish("!"),
        TopicWish(bad + "2", partitions=0),
    )
    assert errors == {
        existing: TOPIC_ALREADY_EXISTS,
        good: 0,
        bad: INVALID_CONFIG,
        "!": INVALID_TOPIC,
        bad + "2": INVALID_PARTITIONS,
    }


def test_names_that_differ_in_dots_and_underscores_collide(
    connection: Connection, new_name: NewName
) -> None:
    stem = new_name().replace("-", "").replace("_", "")
    assert create_topics(connection, TopicWish(stem + ".a_b")) == {stem + ".a_b": 0}
    answer = create_topics(connection, TopicWish(stem + "_a.b"))
    assert answer == {stem + "_a.b": INVALID_TOPIC}


def test_batches_over_the_topic_limit_are_refused(
    connection: Connection, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name(), max_message_bytes="1000")
    answer = produce(connection, {(topic, 0): batch([b"v" * 2000])})[topic, 0]
    assert (answer.error_code, answer.base_offset) == (MESSAGE_TOO_LARGE, -1)
    assert produce(connection, {(topic, 0): batch([b"v" * 100])})[topic, 0].base_offset == 0


def test_timestamps_too_far_away_are_refused(connection: Connection, new_name: NewName) -> None:
    topic = a_topic(connection, new_name(), message_timestamp_before_max_ms="60000")
    old = batch([b"x"], timestamp_ms=1_000_000_000_000)
    assert produce(connection, {(topic, 0): old})[topic, 0].error_code == INVALID_TIMESTAMP
    assert produce(connection, {(topic, 0): batch([b"x"])})[topic, 0].error_code == 0


def test_compacted_topics_refuse_records_without_a_key(
    connection: Connection, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name(), cleanup_policy="compact")
    assert produce(connection, {(topic, 0): batch([b"x"])})[topic, 0].error_code != 0
    assert produce(connection, {(topic, 0): batch([b"x"], key=b"k")})[topic, 0].error_code == 0


def test_existing_topics_are_refused_with_a_reason(bootstrap: str, new_name: NewName) -> None:
    client, topic = ConfluentClient(bootstrap), new_name()
    client.create_topic(topic)
    admin = client.admin()
    with pytest.raises(KafkaException) as caught:
        admin.create_topics([NewTopic(topic, 1)])[topic].result(WAIT_SECONDS_MAX)
    assert caught.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    assert topic in caught.value.args[0].str()


def test_producing_creates_the_topic_where_that_is_allowed(
    client: Client, new_name: NewName
) -> None:
    topic = new_name()
    assert client.produce(topic, [ToSend(b"first")]) == [0]
    assert client.offset_range(topic, 0) == (0, 1)


def test_metadata_creates_topics_only_when_asked(connection: Connection, new_name: NewName) -> None:
    topic = new_name()
    assert metadata(connection, [topic]).topics[topic][0] == UNKNOWN_TOPIC_OR_PARTITION
    metadata(connection, [topic], auto_create=True)
    eventually(lambda: metadata(connection, [topic]).topics[topic][0] == 0, "the creation")
    assert list(metadata(connection, [topic]).topics[topic][1]) == [0]


def test_auto_creation_refuses_illegal_names(connection: Connection) -> None:
    answer = metadata(connection, ["not legal!"], auto_create=True)
    assert answer.topics["not legal!"][0] == INVALID_TOPIC
