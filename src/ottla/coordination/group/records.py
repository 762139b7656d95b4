"""The coordinator's records as bytes, in Kafka's own format, and back.

A key is its record type and a body, a value its version and a body. Values are written in the
versions Kafka writes; every version is read. Does not know what the records mean.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from ottla.coordination.decision import NewRecord
from ottla.errors import ErrorCode, ProtocolError, Truncated
from ottla.model.ids import NO_TOPIC_ID
from ottla.protocol.codec import decode, encode
from ottla.protocol.message import Message
from ottla.protocol.messages import group_records
from ottla.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ottla.protocol.plan import schema_of

_PREFIX: Final = struct.Struct(">h")
_GROUP_VALUE_VERSION: Final = 3
"""The newest version without tagged fields; Kafka writes this one too."""
_OFFSET_VALUE_VERSION: Final = 3
OFFSET_VALUE_VERSION_WITH_TOPIC_ID: Final = 4
_OFFSET_VALUE_VERSION_WITH_EXPIRY: Final = 1
_KEPT_MAX: Final = 8192
"""So many keys of offsets are remembered: groups commit the same partitions again and again."""
_KEPT_LENGTH_MAX: Final = 100
"""Keys of groups with longer names are not, so that no client fills the memory with them."""

_CLASSES: Final[dict[int, tuple[type[Message], type[Message]]]] = {
    schema_of(key_class).record_type: (key_class, value_class)
    for key_class, value_class in (
        (group_records.LegacyOffsetCommitKey, group_records.LegacyOffsetCommitValue),
        (OffsetCommitKey, OffsetCommitValue),
        (GroupMetadataKey, GroupMetadataValue),
        (group_records.ConsumerGroupMetadataKey, group_records.ConsumerGroupMetadataValue),
        (
            group_records.ConsumerGroupPartitionMetadataKey,
            group_records.ConsumerGroupPartitionMetadataValue,
        ),
        (
            group_records.ConsumerGroupMemberMetadataKey,
            group_records.ConsumerGroupMemberMetadataValue,
        ),
        (
            group_records.ConsumerGroupTargetAssignmentMetadataKey,
            group_records.ConsumerGroupTargetAssignmentMetadataValue,
        ),
        (
            group_records.ConsumerGroupTargetAssignmentMemberKey,
            group_records.ConsumerGroupTargetAssignmentMemberValue,
        ),
        (
            group_records.ConsumerGroupCurrentMemberAssignmentKey,
            group_records.ConsumerGroupCurrentMemberAssignmentValue,
        ),
        (
            group_records.ConsumerGroupRegularExpressionKey,
            group_records.ConsumerGroupRegularExpressionValue,
        ),
    )
}
"""The classes of key and value by record type."""
_VALUE_VERSIONS: Final = {
    record_type: schema_of(value_class).range()
    for record_type, (_, value_class) in _CLASSES.items()
}


class UnknownRecordVersion(ProtocolError):
    """A record's value has a version that is not known, so its meaning is not either."""

    code = ErrorCode.UNSUPPORTED_VERSION

    def __init__(self, record_type: int, version: int) -> None:
        self.record_type = record_type
        self.version = version
        super().__init__(f"a record of type {record_type} has the unknown version {version}")


def decode_record(key: bytes, value: bytes | None) -> tuple[Message, Message | None] | None:
    """Key and value of a record; None for a type of record that is not ours."""
    record_type, body = _split(key)
    classes = _CLASSES.get(record_type)
    if classes is None:
        return None
    key_class, value_class = classes
    decoded_key = decode(key_class, body, 0)
    if value is None:
        return decoded_key, None
    version, value_body = _split(value)
    if version not in _VALUE_VERSIONS[record_type]:
        raise UnknownRecordVersion(record_type, version)
    return decoded_key, decode(value_class, value_body, version)


def _split(data: bytes) -> tuple[int, memoryview]:
    if len(data) < _PREFIX.size:
        raise Truncated("a coordinator's record", len(data))
    return _PREFIX.unpack_from(data)[0], memoryview(data)[_PREFIX.size :]


def new_record(key: Message, value: Message | None, version: int = 0) -> NewRecord:
    """A record to be written; a tombstone where there is no value."""
    encoded_key = _encoded_key(key)
    if value is None:
        return NewRecord(encoded_key, None)
    return NewRecord(encoded_key, _PREFIX.pack(version) + encode(value, version))


def group_record(group_id: str, value: GroupMetadataValue | None) -> NewRecord:
    """A classic group as it is from now on."""
    return new_record(GroupMetadataKey(group=group_id), value, _GROUP_VALUE_VERSION)


def offset_record(key: OffsetCommitKey, value: OffsetCommitValue) -> NewRecord:
    """An offset a group has committed."""
    if value.expire_timestamp >= 0:
        return new_record(key, value, _OFFSET_VALUE_VERSION_WITH_EXPIRY)
    # These versions say all of the value but what it does not have.
    with_id = value.topic_id != NO_TOPIC_ID
    version = OFFSET_VALUE_VERSION_WITH_TOPIC_ID if with_id else _OFFSET_VALUE_VERSION
    encoded_value = _PREFIX.pack(version) + encode(value, version)
    return NewRecord(_offset_key(key), encoded_value, (key, value))


def _offset_key(key: OffsetCommitKey) -> bytes:
    if len(key.group) > _KEPT_LENGTH_MAX:
        return _encoded_key(key)
    return _known_offset_key(key.group, key.topic, key.partition)


@lru_cache(_KEPT_MAX)
def _known_offset_key(group: str, topic: str, partition: int) -> bytes:
    return _encoded_key(OffsetCommitKey(group=group, topic=topic, partition=partition))


def _encoded_key(key: Message) -> bytes:
    return _PREFIX.pack(schema_of(type(key)).record_type) + encode(key, 0)


def offset_tombstone(group_id: str, topic: str, partition: int) -> NewRecord:
    """An offset a group no longer has."""
    return new_record(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


def group_id_of(key: Message) -> str:
    """The group a record speaks of."""
    if isinstance(key, OffsetCommitKey | GroupMetadataKey | group_records.LegacyOffsetCommitKey):
        return key.group
    group_id = getattr(key, "group_id", None)
    assert isinstance(group_id, str), f"{type(key).__name__} names no group"
    return group_id


def groups_of(written: Iterable[NewRecord]) -> list[str]:
    """The groups whose members or generations some records speak of, each once."""
    found: dict[str, None] = {}
    for record in written:
        record_type, body = _split(record.key)
        if record_type != schema_of(OffsetCommitKey).record_type:
            found[group_id_of(decode(_CLASSES[record_type][0], body, 0))] = None
    return list(found)
