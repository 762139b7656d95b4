"""The records of __consumer_offsets that are about share groups."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import NO_UUID, Array, Int8, Int32, Int64, Message, Schema, String, Uuid


class ShareGroupCurrentMemberAssignmentKey(Message):
    """Whose current assignment in a share group."""

    schema: ClassVar[Schema] = Schema(record_type=14, versions="0")
    group_id: Annotated[str, String("0+")] = ""
    member_id: Annotated[str, String("0+")] = ""


class TopicPartitions(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []


class ShareGroupCurrentMemberAssignmentValue(Message):
    """What a member of a share group owns now and is giving up."""

    schema: ClassVar[Schema] = Schema(record_type=14, versions="0", flexible="0+")
    member_epoch: Annotated[int, Int32("0+")] = 0
    previous_member_epoch: Annotated[int, Int32("0+")] = 0
    state: Annotated[int, Int8("0+")] = 0
    assigned_partitions: Annotated[list[TopicPartitions], Array("0+")] = []


class ShareGroupMemberMetadataKey(Message):
    """Which member of a share group."""

    schema: ClassVar[Schema] = Schema(record_type=10, versions="0")
    group_id: Annotated[str, String("0+")] = ""
    member_id: Annotated[str, String("0+")] = ""


class ShareGroupMemberMetadataValue(Message):
    """What a member of a share group told about itself."""

    schema: ClassVar[Schema] = Schema(record_type=10, versions="0", flexible="0+")
    rack_id: Annotated[str | None, String("0+", nullable="0+")] = ""
    client_id: Annotated[str, String("0+")] = ""
    client_host: Annotated[str, String("0+")] = ""
    subscribed_topic_names: Annotated[list[str], Array("0+", of=String)] = []


class ShareGroupMetadataKey(Message):
    """Which share group."""

    schema: ClassVar[Schema] = Schema(record_type=11, versions="0")
    group_id: Annotated[str, String("0+")] = ""


class ShareGroupMetadataValue(Message):
    """The share group's epoch and what it was computed from."""

    schema: ClassVar[Schema] = Schema(record_type=11, versions="0", flexible="0+")
    epoch: Annotated[int, Int32("0+")] = 0
    metadata_hash: Annotated[int, Int64("0+")] = 0


class ShareGroupStatePartitionMetadataKey(Message):
    """Which share group's set of initialised partitions."""

    schema: ClassVar[Schema] = Schema(record_type=15, versions="0")
    group_id: Annotated[str, String("0+")] = ""


class TopicPartitionsInfo(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    topic_name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []


class TopicInfo(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    topic_name: Annotated[str, String("0+")] = ""


class ShareGroupStatePartitionMetadataValue(Message):
    """The partitions whose state a share group has begun, begins or deletes."""

    schema: ClassVar[Schema] = Schema(record_type=15, versions="0", flexible="0+")
    initializing_topics: Annotated[list[TopicPartitionsInfo], Array("0+")] = []
    initialized_topics: Annotated[list[TopicPartitionsInfo], Array("0+")] = []
    deleting_topics: Annotated[list[TopicInfo], Array("0+")] = []


class ShareGroupTargetAssignmentMemberKey(Message):
    """Whose part of a share group's target assignment."""

    schema: ClassVar[Schema] = Schema(record_type=13, versions="0")
    group_id: Annotated[str, String("0+")] = ""
    member_id: Annotated[str, String("0+")] = ""


class TopicPartition(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []


class ShareGroupTargetAssignmentMemberValue(Message):
    """What a member of a share group should own in the end."""

    schema: ClassVar[Schema] = Schema(record_type=13, versions="0", flexible="0+")
    topic_partitions: Annotated[list[TopicPartition], Array("0+")] = []


class ShareGroupTargetAssignmentMetadataKey(Message):
    """Which share group's target assignment."""

    schema: ClassVar[Schema] = Schema(record_type=12, versions="0")
    group_id: Annotated[str, String("0+")] = ""


class ShareGroupTargetAssignmentMetadataValue(Message):
    """The epoch of a share group's target assignment."""

    schema: ClassVar[Schema] = Schema(record_type=12, versions="0", flexible="0+")
    assignment_epoch: Annotated[int, Int32("0+")] = 0
    assignment_timestamp: Annotated[int, Int64("0+", tag=0)] = 0
