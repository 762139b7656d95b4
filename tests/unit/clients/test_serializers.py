"""Objects become bytes and come back the same."""

from dataclasses import dataclass

import msgspec
import pytest

from ottla.clients import serializers
from ottla.clients.failures import SerializationFailed
from ottla.clients.serializers import deserializer_for, serializer_for
from ottla.errors import ConfigError


@dataclass
class Point:
    x: int
    y: int


class Order(msgspec.Struct):
    id: int
    name: str


@pytest.mark.parametrize(
    ("choice", "value"),
    [
        ("str", "grüß"),
        (str, "text"),
        ("int", -5),
        (int, 2**62),
        ("float", 0.5),
        ("json", {"a": [1, None]}),
        ("msgpack", [1, "b"]),
        (Point, Point(1, 2)),
        (Order, Order(7, "seven")),
    ],
)
def test_what_is_serialized_comes_back(choice: object, value: object) -> None:
    serialize, deserialize = serializer_for(choice), deserializer_for(choice)
    assert serialize is not None
    assert deserialize is not None

    assert deserialize(serialize(value)) == value


def test_numbers_are_javas() -> None:
    assert serializers.int32(1) == b"\0\0\0\x01"
    assert serializers.int64(-1) == b"\xff" * 8
    assert serializers.float64(1.0) == b"\x3f\xf0" + b"\0" * 6


def test_bytes_need_no_serializer() -> None:
    assert serializer_for(bytes) is serializer_for(None) is serializer_for("bytes") is None


def test_what_can_change_is_copied() -> None:
    source = bytearray(b"ab")
    copied = serializers.as_bytes(source)
    source[0] = 0

    assert copied == b"ab"


def test_a_str_without_a_serializer_is_refused_with_advice() -> None:
    with pytest.raises(SerializationFailed, match="serializer"):
        serializers.as_bytes("text")


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="json"):
        serializer_for("jsn")
