"""Serdes: Kafka's bytes, and clear refusals."""

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from ottla.streams import SessionWindowedSerde, TimeWindowedSerde, TopologyError, Windowed
from ottla.streams.engine.changes import Change, ChangeSerde
from ottla.streams.engine.subscriptions import (
    Answer,
    AnswerSerde,
    Subscription,
    SubscriptionSerde,
    Wish,
)
from ottla.streams.serdes import Serde, serde_for


@dataclass
class Point:
    x: int


class Place(msgspec.Struct):
    name: str


def there_and_back(serde: Serde, value: Any) -> Any:
    return serde.deserializer()(serde.serializer()(value))


@pytest.mark.parametrize(
    ("choice", "value", "data"),
    [
        ("str", "ä", "ä".encode()),
        (bytes, b"x", b"x"),
        (int, 1, bytes(7) + b"\x01"),
        ("float", 1.0, b"\x3f\xf0" + bytes(6)),
        ("json", {"a": [1]}, b'{"a":[1]}'),
        (dict, {"a": 1}, b'{"a":1}'),
        (Point, Point(3), b'{"x":3}'),
        (Place, Place("here"), b'{"name":"here"}'),
    ],
)
def test_a_serde_goes_there_and_back(choice: Any, value: Any, data: bytes) -> None:
    serde = serde_for(choice)
    assert serde.serializer()(value) == data
    assert serde.deserializer()(data) == value


def test_windowed_keys_are_kafka_streams_bytes() -> None:
    timed, sessions = (
        TimeWindowedSerde(serde_for("str"), 10),
        SessionWindowedSerde(serde_for("str")),
    )
    assert timed.serializer()(Windowed("k", 5, 15)) == b"k" + bytes(7) + b"\x05"
    assert (
        sessions.serializer()(Windowed("k", 5, 15))
        == b"k" + bytes(7) + b"\x0f" + bytes(7) + b"\x05"
    )
    assert there_and_back(timed, Windowed("key", 5, 15)) == Windowed("key", 5, 15)
    assert there_and_back(sessions, Windowed("key", 5, 9)) == Windowed("key", 5, 9)


def test_a_windowed_key_goes_where_its_key_goes() -> None:
    timed = TimeWindowedSerde(serde_for("str"), 10)
    assert timed.partitioner()(Windowed("k", 5, 15)) == b"k"


@pytest.mark.parametrize("change", [Change("a", "b"), Change(None, "b"), Change("", None)])
def test_changes_travel_whole(change: Change) -> None:
    assert there_and_back(ChangeSerde(serde_for("str")), change) == change


def test_subscriptions_and_answers_travel_whole() -> None:
    asked = Subscription("k", Wish.ANSWER_ALWAYS, bytes(range(16)), 3)
    assert there_and_back(SubscriptionSerde(serde_for("str")), asked) == asked
    for answer in (Answer("v", None, 2), Answer(None, bytes(16), 0), Answer("", bytes(16), 0)):
        assert there_and_back(AnswerSerde(serde_for("str")), answer) == answer


@pytest.mark.parametrize("choice", ["text", complex, 3])
def test_what_is_no_serde_is_refused_in_a_sentence(choice: Any) -> None:
    with pytest.raises(TopologyError, match=r"serde|dataclass"):
        serde_for(choice)
