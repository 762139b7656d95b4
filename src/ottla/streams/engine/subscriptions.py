"""What travels between the two sides of a foreign-key join: subscriptions and answers."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple

from ottla.streams.serdes import Decode, Encode, Serde

_HEAD: Final = struct.Struct(">Bi16s?")
_NO_HASH: Final = bytes(16)


class Wish(IntEnum):
    """What the primary side wants the foreign side to do."""

    FORGET = 0
    """Remove the subscription; another one takes its place."""
    FORGET_AND_ANSWER = 1
    """Remove the subscription and answer that there is nothing."""
    ANSWER_ALWAYS = 2
    """Keep it and answer, also that there is no such row."""
    ANSWER_IF_FOUND = 3
    """Keep it and answer if there is such a row."""


class Subscription(NamedTuple):
    """Which primary row asks, and which version of it."""

    primary_key: Any
    wish: Wish
    value_hash: bytes | None
    partition: int


class Answer(NamedTuple):
    """The foreign row for the version of the primary row that asked."""

    foreign_value: Any
    value_hash: bytes | None
    partition: int


def hash_of(data: bytes) -> bytes:
    """Tells one version of a row from another."""
    return hashlib.blake2b(data, digest_size=16).digest()


def answer_partition(_key: Any, value: Answer, _count: int) -> int:
    """Answers go back to the partition that asked, whatever its partitioner was."""
    return value.partition


@dataclass(frozen=True, slots=True)
class SubscriptionSerde:
    """Subscriptions as bytes, in topics and in their store."""

    primary_key: Serde

    @property
    def name(self) -> str:
        return "subscription"

    def serializer(self) -> Encode:
        encode = self.primary_key.serializer()

        def serialize(one: Subscription) -> bytes:
            known = one.value_hash is not None
            return _HEAD.pack(one.wish, one.partition, one.value_hash or _NO_HASH, known) + encode(
                one.primary_key
            )

        return serialize

    def deserializer(self) -> Decode:
        decode = self.primary_key.deserializer()

        def deserialize(data: bytes) -> Subscription:
            wish, partition, value_hash, known = _HEAD.unpack_from(data)
            key = decode(data[_HEAD.size :])
            return Subscription(key, Wish(wish), value_hash if known else None, partition)

        return deserialize

    def partitioner(self) -> Encode:
        return self.serializer()


@dataclass(frozen=True, slots=True)
class AnswerSerde:
    """Answers as bytes; the head's first field says whether a row was found."""

    foreign_value: Serde

    @property
    def name(self) -> str:
        return "answer"

    def serializer(self) -> Encode:
        encode = self.foreign_value.serializer()

        def serialize(one: Answer) -> bytes:
            found, known = one.foreign_value is not None, one.value_hash is not None
            head = _HEAD.pack(found, one.partition, one.value_hash or _NO_HASH, known)
            return head + encode(one.foreign_value) if found else head

        return serialize

    def deserializer(self) -> Decode:
        decode = self.foreign_value.deserializer()

        def deserialize(data: bytes) -> Answer:
            found, partition, value_hash, known = _HEAD.unpack_from(data)
            value = decode(data[_HEAD.size :]) if found else None
            return Answer(value, value_hash if known else None, partition)

        return deserialize

    def partitioner(self) -> Encode:
        return self.serializer()
