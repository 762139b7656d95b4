"""The records of __consumer_offsets: committed offsets, classic groups and consumer groups."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import field

from ottla.protocol.message import (
    NO_UUID,
    Array,
    Bytes,
    Int8,
    Int32,
    Int64,
    Message,
    Nested,
    Schema,
    String,
    Uuid,
)


class LegacyOffsetCommitKey(Message):
    """A committed offset's key, as very old brokers wrote it."""

    schema: ClassVar[Schema] = Schema(record_type=0, versions="0")
    group: Annotated[str, String("0+")] = ""
    topic: Annotated[str, String("0+")] = ""
    partition: Annotated[int, Int32("0+")] = 0


class LegacyOffsetCommitValue(Message):
    """A committed offset, as very old brokers wrote it."""

    schema: ClassVar[Schema] = Schema(record_type=0, versions="0")
    offset: Annotated[int, Int64("0+")] = 0
    metadata: Annotated[str, String("0+")] = ""
    commit_timestamp: Annotated[int, Int64("0+")] = 0


class OffsetCommitKey(Message):
    """Which group's offset, of which partition."""

    schema: ClassVar[Schema] = Schema(record_type=1, versions="0")
    group: Annotated[str, String("0+")] = ""
    topic: Annotated[str, String("0+")] = ""
    partition: Annotated[int, Int32("0+")] = 0


class OffsetCommitValue(Message):
    """How far the group has read the partition."""

    schema: ClassVar[Schema] = Schema(record_type=1, versions="0-4", flexible="4+")
    offset: Annotated[int, Int64("0+")] = 0
    leader_epoch: Annotated[int, Int32("3+")] = -1
    metadata: Annotated[str, String("0+")] = ""
    commit_timestamp: Annotated[int, Int64("0+")] = 0
    expire_timestamp: Annotated[int, Int64("1")] = -1
    topic_id: Annotated[bytes, Uuid("4+", tag=0)] = NO_UUID


class GroupMetadataKey(Message):
    """Which classic group."""

    schema: ClassVar[Schema] = Schema(record_type=2, versions="0")
    group: Annotated[str, String("0+")] = ""


class MemberMetadata(Message):
    member_id: Annotated[str, String("0+")] = ""
    group_instance_id: Annotated[str | None, String("3+", nullable="3+")] = None
    client_id: Annotated[str, String("0+")] = ""
    client_host: Annotated[str, String("0+")] = ""
    rebalance_timeout: Annotated[int, Int32("1+")] = -1
    session_timeout: Annotated[int, Int32("0+")] = 0
    subscription: Annotated[bytes, Bytes("0+")] = b""
    assignment: Annotated[bytes, Bytes("0+")] = b""


class GroupMetadataValue(Message):
    """A classic group's generation and members."""

    schema: ClassVar[Schema] = Schema(record_type=2, versions="0-4", flexible="4+")
    protocol_type: Annotated[str, String("0+")] = ""
    generation: Annotated[int, Int32("0+")] = 0
    protocol: Annotated[str | None, String("0+", nullable="0+")] = ""
    leader: Annotated[str | None, String("0+", nullable="0+")] = ""
    current_state_timestamp: Annotated[int, Int64("2+")] = -1
    members: Annotated[list[MemberMetadata], Array("0+")] = []


class ConsumerGroupCurrentMemberAssignmentKey(Message):
    """Whose current assignment in a consumer group."""

    schema: ClassVar[Schema] = Schema(record_type=8, versions="0")
    group_id: Annotated[str, String("0+")] = ""
    member_id: Annotated[str, String("0+")] = ""


class TopicPartitions(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []
    assignment_epochs: Annotated[list[int] | None, Array("0+", of=Int32, nullable="0+", tag=0)] = []


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    """What a member of a consumer group owns now and is giving up."""

    schema: ClassVar[Schema] = Schema(record_type=8, versions="0", flexible="0+")
    member_epoch: Annotated[int, Int32("0+")] = 0
    previous_member_epoch: Annotated[int, Int32("0+")] = 0
    state: Annotated[int, Int8("0+")] = 0
    assigned_partitions: Annotated[list[TopicPartitions], Array("0+")] = []
    partitions_pending_revocation: Annotated[list[TopicPartitions], Array("0+")] = []


class ConsumerGroupMemberMetadataKey(Message):
    """Which member of a consumer group."""

    schema: ClassVar[Schema] = Schema(record_type=5, versions="0")
    group_id: Annotated[str, String("0+")] = ""
    member_id: Annotated[str, String("0+")] = ""


class ClassicProtocol(Message):
    name: Annotated[str, String("0+")] = ""
    metadata: Annotated[bytes, Bytes("0+")] = b""


class ClassicMemberMetadata(Message):
    session_timeout_ms: Annotated[int, Int32("0+")] = 0
    supported_protocols: Annotated[list[ClassicProtocol], Array("0+")] = []


class ConsumerGroupMemberMetadataValue(Message):
    """What a member of a consumer group told about itself."""

    schema: ClassVar[Schema] = Schema(record_type=5, versions="0", flexible="0+")
    instance_id: Annotated[str | None, String("0+", nullable="0+")] = ""
    rack_id: Annotated[str | None, String("0+", nullable="0+")] = ""
    client_id: Annotated[str, String("0+")] = ""
    client_host: Annotated[str, String("0+")] = ""
    subscribed_topic_names: Annotated[list[str], Array("0+", of=String)] = []
    subscribed_topic_regex: Annotated[str | None, String("0+", nullable="0+")] = ""
    rebalance_timeout_ms: Annotated[int, Int32("0+")] = -1
    server_assignor: Annotated[str | None, String("0+", nullable="0+")] = ""
    classic_member_metadata: Annotated[
        ClassicMemberMetadata | None, Nested("0+", nullable="0+", tag=0)
    ] = field(default_factory=ClassicMemberMetadata)


class ConsumerGroupMetadataKey(Message):
    """Which consumer group."""

    schema: ClassVar[Schema] = Schema(record_type=3, versions="0")
    group_id: Annotated[str, String("0+")] = ""


class ConsumerGroupMetadataValue(Message):
    """The consumer group's epoch and what it was computed from."""

    schema: ClassVar[Schema] = Schema(record_type=3, versions="0", flexible="0+")
    epoch: Annotated[int, Int32("0+")] = 0
    metadata_hash: Annotated[int, Int64("0+", tag=0)] = 0


class ConsumerGroupPartitionMetadataKey(Message):
    """Which consumer group's picture of partitions."""

    schema: ClassVar[Schema] = Schema(record_type=4, versions="0")
    group_id: Annotated[str, String("0+")] = ""


class PartitionMetadata(Message):
    partition: Annotated[int, Int32("0+")] = 0
    racks: Annotated[list[str], Array("0+", of=String)] = []


class TopicMetadata(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    topic_name: Annotated[str, String("0+")] = ""
    num_partitions: Annotated[int, Int32("0+")] = 0
    partition_metadata: Annotated[list[PartitionMetadata], Array("0+")] = []


class ConsumerGroupPartitionMetadataValue(Message):
    """The partitions a consumer group last knew of its topics."""

    schema: ClassVar[Schema] = Schema(record_type=4, versions="0", flexible="0+")
    topics: Annotated[list[TopicMetadata], Array("0+")] = []


class ConsumerGroupRegularExpressionKey(Message):
    """Which subscription by pattern of a consumer group."""

    schema: ClassVar[Schema] = Schema(record_type=16, versions="0")
    group_id: Annotated[str, String("0+")] = ""
    regular_expression: Annotated[str, String("0+")] = ""


class ConsumerGroupRegularExpressionValue(Message):
    """The topics a pattern of a consumer group matched, and when."""

    schema: ClassVar[Schema] = Schema(record_type=16, versions="0", flexible="0+")
    topics: Annotated[list[str], Array("0+", of=String)] = []
    version: Annotated[int, Int64("0+")] = 0
    timestamp: Annotated[int, Int64("0+")] = 0


class ConsumerGroupTargetAssignmentMemberKey(Message):
    """Whose part of a consumer group's target assignment."""

    schema: ClassVar[Schema] = Schema(record_type=7, versions="0")
    group_id: Annotated[str, String("0+")] = ""
    member_id: Annotated[str, String("0+")] = ""


class TopicPartition(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []


class ConsumerGroupTargetAssignmentMemberValue(Message):
    """What a member of a consumer group should own in the end."""

    schema: ClassVar[Schema] = Schema(record_type=7, versions="0", flexible="0+")
    topic_partitions: Annotated[list[TopicPartition], Array("0+")] = []


class ConsumerGroupTargetAssignmentMetadataKey(Message):
    """Which consumer group's target assignment."""

    schema: ClassVar[Schema] = Schema(record_type=6, versions="0")
    group_id: Annotated[str, String("0+")] = ""


class ConsumerGroupTargetAssignmentMetadataValue(Message):
    """The epoch of a consumer group's target assignment."""

    schema: ClassVar[Schema] = Schema(record_type=6, versions="0", flexible="0+")
    assignment_epoch: Annotated[int, Int32("0+")] = 0
    assignment_timestamp: Annotated[int, Int64("0+", tag=0)] = 0
