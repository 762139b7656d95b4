"""What members of a classic group tell each other, as bytes inside JoinGroup and SyncGroup."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final

from ottla.clients.consumer.assignors import Member
from ottla.clients.group_offsets import by_topic
from ottla.errors import ProtocolError
from ottla.model.ids import TopicPartition
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)

VERSION: Final = 3
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")


def subscription_bytes(
    topics: Iterable[str],
    owned: Iterable[TopicPartition],
    generation: int,
    *,
    rack: str = "",
    user_data: bytes | None = None,
) -> bytes:
    """A member's wishes and what it has."""
    message = ConsumerProtocolSubscription(
        topics=sorted(topics),
        user_data=user_data,
        owned_partitions=[
            ConsumerProtocolSubscriptionTopicPartition(
                topic=topic, partitions=[each.partition for each in rows]
            )
            for topic, rows in by_topic(owned).items()
        ],
        generation_id=generation,
        rack_id=rack or None,
    )
    return _INT16.pack(VERSION) + encode(message, VERSION)


def member_from(member_id: str, instance_id: str | None, metadata: bytes, protocol: str) -> Member:
    """A member from its wishes; whatever version they are in, they begin like those known here."""
    version = min(_version(metadata), VERSION)
    message = decode(ConsumerProtocolSubscription, metadata[_INT16.size :], version)
    owned = tuple(
        TopicPartition(topic.topic, partition)
        for topic in message.owned_partitions
        for partition in topic.partitions
    )
    generation = message.generation_id
    if protocol == "sticky" and message.user_data:
        owned, generation = sticky_memory_from(message.user_data)
    elif protocol == "cooperative-sticky" and generation < 0 and message.user_data:
        generation = _INT32.unpack_from(message.user_data)[0]
    topics, rack = frozenset(message.topics), message.rack_id or None
    return Member(member_id, topics, instance_id, owned, generation, rack)


def assignment_bytes(partitions: Iterable[TopicPartition]) -> bytes:
    """What one member shall read."""
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(
                topic=topic, partitions=[each.partition for each in rows]
            )
            for topic, rows in by_topic(partitions).items()
        ]
    )
    return _INT16.pack(VERSION) + encode(message, VERSION)


def assignment_from(data: bytes) -> tuple[TopicPartition, ...]:
    """What this member shall read; nothing for no bytes."""
    if not data:
        return ()
    version = min(_version(data), VERSION)
    message = decode(ConsumerProtocolAssignment, data[_INT16.size :], version)
    return tuple(
        TopicPartition(topic.topic, partition)
        for topic in message.assigned_partitions
        for partition in topic.partitions
    )


def sticky_memory(owned: Sequence[TopicPartition], generation: int) -> bytes:
    """What a member of the eager sticky assignor had, as its Java twin writes it."""
    topics = by_topic(owned)
    parts = [_INT32.pack(len(topics))]
    for topic, rows in topics.items():
        name = topic.encode()
        parts.append(_INT16.pack(len(name)) + name + _INT32.pack(len(rows)))
        parts += [_INT32.pack(each.partition) for each in rows]
    return b"".join(parts) + _INT32.pack(generation)


def sticky_memory_from(data: bytes) -> tuple[tuple[TopicPartition, ...], int]:
    """The same, read; damaged memories are none."""
    owned: list[TopicPartition] = []
    try:
        (topic_count,) = _INT32.unpack_from(data)
        position = _INT32.size
        for _ in range(topic_count):
            (size,) = _INT16.unpack_from(data, position)
            position += _INT16.size
            topic = data[position : position + size].decode()
            position += size
            (count,) = _INT32.unpack_from(data, position)
            position += _INT32.size
            if not 0 <= count <= (len(data) - position) // _INT32.size:
                return (), -1
            for _ in range(count):
                owned.append(TopicPartition(topic, _INT32.unpack_from(data, position)[0]))
                position += _INT32.size
        has_generation = len(data) >= position + _INT32.size
        generation = _INT32.unpack_from(data, position)[0] if has_generation else -1
    except (struct.error, UnicodeDecodeError):
        return (), -1
    return tuple(owned), generation


def _version(data: bytes) -> int:
    if len(data) < _INT16.size:
        raise ProtocolError("a member's words are too short")
    return int(_INT16.unpack_from(data)[0])
