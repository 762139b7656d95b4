"""The records of __consumer_offsets that are about streams groups."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import (
    Array,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Nested,
    Schema,
    String,
    Uint16,
)


class StreamsGroupCurrentMemberAssignmentKey(Message):
    """Whose current assignment in a streams group."""

    schema: ClassVar[Schema] = Schema(record_type=22, versions="0")
    group_id: Annotated[str, String("0+")] = ""
    member_id: Annotated[str, String("0+")] = ""


class StreamsGroupCurrentMemberAssignmentTaskIds(Message):
    subtopology_id: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []
    assignment_epochs: Annotated[list[int] | None, Array("0+", of=Int32, nullable="0+", tag=0)] = []


class StreamsGroupCurrentMemberAssignmentValue(Message):
    """What a member of a streams group owns now and is giving up."""

    schema: ClassVar[Schema] = Schema(record_type=22, versions="0", flexible="0+")
    member_epoch: Annotated[int, Int32("0+")] = 0
    previous_member_epoch: Annotated[int, Int32("0+")] = 0
    state: Annotated[int, Int8("0+")] = 0
    active_tasks: Annotated[list[StreamsGroupCurrentMemberAssignmentTaskIds], Array("0+")] = []
    standby_tasks: Annotated[list[StreamsGroupCurrentMemberAssignmentTaskIds], Array("0+")] = []
    warmup_tasks: Annotated[list[StreamsGroupCurrentMemberAssignmentTaskIds], Array("0+")] = []
    active_tasks_pending_revocation: Annotated[
        list[StreamsGroupCurrentMemberAssignmentTaskIds], Array("0+")
    ] = []
    standby_tasks_pending_revocation: Annotated[
        list[StreamsGroupCurrentMemberAssignmentTaskIds], Array("0+")
    ] = []
    warmup_tasks_pending_revocation: Annotated[
        list[StreamsGroupCurrentMemberAssignmentTaskIds], Array("0+")
    ] = []


class StreamsGroupMemberMetadataKey(Message):
    """Which member of a streams group."""

    schema: ClassVar[Schema] = Schema(record_type=19, versions="0")
    group_id: Annotated[str, String("0+")] = ""
    member_id: Annotated[str, String("0+")] = ""


class Endpoint(Message):
    host: Annotated[str, String("0+")] = ""
    port: Annotated[int, Uint16("0+")] = 0


class KeyValue(Message):
    key: Annotated[str, String("0+")] = ""
    value: Annotated[str, String("0+")] = ""


class StreamsGroupMemberMetadataValue(Message):
    """What a member of a streams group told about itself."""

    schema: ClassVar[Schema] = Schema(record_type=19, versions="0", flexible="0+")
    instance_id: Annotated[str | None, String("0+", nullable="0+")] = ""
    rack_id: Annotated[str | None, String("0+", nullable="0+")] = ""
    client_id: Annotated[str, String("0+")] = ""
    client_host: Annotated[str, String("0+")] = ""
    rebalance_timeout_ms: Annotated[int, Int32("0+")] = -1
    topology_epoch: Annotated[int, Int32("0+")] = 0
    process_id: Annotated[str, String("0+")] = ""
    user_endpoint: Annotated[Endpoint | None, Nested("0+", nullable="0+")] = None
    client_tags: Annotated[list[KeyValue], Array("0+")] = []


class StreamsGroupMetadataKey(Message):
    """Which streams group."""

    schema: ClassVar[Schema] = Schema(record_type=17, versions="0")
    group_id: Annotated[str, String("0+")] = ""


class LastAssignmentConfig(Message):
    key: Annotated[str, String("0+")] = ""
    value: Annotated[str, String("0+")] = ""


class StreamsGroupMetadataValue(Message):
    """The streams group's epoch and what it was computed from."""

    schema: ClassVar[Schema] = Schema(record_type=17, versions="0", flexible="0+")
    epoch: Annotated[int, Int32("0+")] = 0
    metadata_hash: Annotated[int, Int64("0+")] = 0
    validated_topology_epoch: Annotated[int, Int32("0+", tag=0)] = -1
    last_assignment_configs: Annotated[
        list[LastAssignmentConfig] | None, Array("0+", nullable="0+", tag=1)
    ] = []


class StreamsGroupTargetAssignmentMemberKey(Message):
    """Whose part of a streams group's target assignment."""

    schema: ClassVar[Schema] = Schema(record_type=21, versions="0")
    group_id: Annotated[str, String("0+")] = ""
    member_id: Annotated[str, String("0+")] = ""


class StreamsGroupTargetAssignmentMemberTaskIds(Message):
    subtopology_id: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []


class StreamsGroupTargetAssignmentMemberValue(Message):
    """What a member of a streams group should own in the end."""

    schema: ClassVar[Schema] = Schema(record_type=21, versions="0", flexible="0+")
    active_tasks: Annotated[list[StreamsGroupTargetAssignmentMemberTaskIds], Array("0+")] = []
    standby_tasks: Annotated[list[StreamsGroupTargetAssignmentMemberTaskIds], Array("0+")] = []
    warmup_tasks: Annotated[list[StreamsGroupTargetAssignmentMemberTaskIds], Array("0+")] = []


class StreamsGroupTargetAssignmentMetadataKey(Message):
    """Which streams group's target assignment."""

    schema: ClassVar[Schema] = Schema(record_type=20, versions="0")
    group_id: Annotated[str, String("0+")] = ""


class StreamsGroupTargetAssignmentMetadataValue(Message):
    """The epoch of a streams group's target assignment."""

    schema: ClassVar[Schema] = Schema(record_type=20, versions="0", flexible="0+")
    assignment_epoch: Annotated[int, Int32("0+")] = 0
    assignment_timestamp: Annotated[int, Int64("0+", tag=0)] = 0


class StreamsGroupTopologyKey(Message):
    """Which streams group's topology."""

    schema: ClassVar[Schema] = Schema(record_type=23, versions="0")
    group_id: Annotated[str, String("0+")] = ""


class TopicConfig(Message):
    key: Annotated[str, String("0+")] = ""
    value: Annotated[str, String("0+")] = ""


class TopicInfo(Message):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[int, Int32("0+")] = 0
    replication_factor: Annotated[int, Int16("0+")] = 0
    topic_configs: Annotated[list[TopicConfig], Array("0+")] = []


class CopartitionGroup(Message):
    source_topics: Annotated[list[int], Array("0+", of=Int16)] = []
    source_topic_regex: Annotated[list[int], Array("0+", of=Int16)] = []
    repartition_source_topics: Annotated[list[int], Array("0+", of=Int16)] = []


class Subtopology(Message):
    subtopology_id: Annotated[str, String("0+")] = ""
    source_topics: Annotated[list[str], Array("0+", of=String)] = []
    source_topic_regex: Annotated[list[str], Array("0+", of=String)] = []
    state_changelog_topics: Annotated[list[TopicInfo], Array("0+")] = []
    repartition_sink_topics: Annotated[list[str], Array("0+", of=String)] = []
    repartition_source_topics: Annotated[list[TopicInfo], Array("0+")] = []
    copartition_groups: Annotated[list[CopartitionGroup], Array("0+")] = []


class StreamsGroupTopologyValue(Message):
    """The topology a streams group runs."""

    schema: ClassVar[Schema] = Schema(record_type=23, versions="0", flexible="0+")
    epoch: Annotated[int, Int32("0+")] = 0
    subtopologies: Annotated[list[Subtopology], Array("0+")] = []
