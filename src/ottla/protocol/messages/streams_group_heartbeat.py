"""The messages of StreamsGroupHeartbeat, api key 88."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import field

from ottla.protocol.message import (
    Array,
    Bool,
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


class KeyValue(Message):
    key: Annotated[str, String("0+")] = ""
    value: Annotated[str, String("0+")] = ""


class TopicInfo(Message):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[int, Int32("0+")] = 0
    replication_factor: Annotated[int, Int16("0+")] = 0
    topic_configs: Annotated[list[KeyValue], Array("0+")] = []


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


class Topology(Message):
    epoch: Annotated[int, Int32("0+")] = 0
    subtopologies: Annotated[list[Subtopology], Array("0+")] = []


class TaskIds(Message):
    subtopology_id: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []


class Endpoint(Message):
    host: Annotated[str, String("0+")] = ""
    port: Annotated[int, Uint16("0+")] = 0


class TaskOffset(Message):
    subtopology_id: Annotated[str, String("0+")] = ""
    partition: Annotated[int, Int32("0+")] = 0
    offset: Annotated[int, Int64("0+")] = 0


class StreamsGroupHeartbeatRequest(Message):
    """Join, stay in or leave a streams group, saying what changed."""

    schema: ClassVar[Schema] = Schema(api_key=88, versions="0-1", flexible="0+")
    group_id: Annotated[str, String("0+")] = ""
    member_id: Annotated[str, String("0+")] = ""
    member_epoch: Annotated[int, Int32("0+")] = 0
    endpoint_information_epoch: Annotated[int, Int32("0+")] = 0
    instance_id: Annotated[str | None, String("0+", nullable="0+")] = None
    rack_id: Annotated[str | None, String("0+", nullable="0+")] = None
    rebalance_timeout_ms: Annotated[int, Int32("0+")] = -1
    topology: Annotated[Topology | None, Nested("0+", nullable="0+")] = None
    active_tasks: Annotated[list[TaskIds] | None, Array("0+", nullable="0+")] = None
    standby_tasks: Annotated[list[TaskIds] | None, Array("0+", nullable="0+")] = None
    warmup_tasks: Annotated[list[TaskIds] | None, Array("0+", nullable="0+")] = None
    process_id: Annotated[str | None, String("0+", nullable="0+")] = None
    user_endpoint: Annotated[Endpoint | None, Nested("0+", nullable="0+")] = None
    client_tags: Annotated[list[KeyValue] | None, Array("0+", nullable="0+")] = None
    task_offsets: Annotated[list[TaskOffset] | None, Array("0+", nullable="0+")] = None
    task_end_offsets: Annotated[list[TaskOffset] | None, Array("0+", nullable="0+")] = None
    shutdown_application: Annotated[bool, Bool("0+")] = False


class Status(Message):
    status_code: Annotated[int, Int8("0+")] = 0
    status_detail: Annotated[str, String("0+")] = ""


class TopicPartition(Message):
    topic: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []


class EndpointToPartitions(Message):
    user_endpoint: Annotated[Endpoint, Nested("0+")] = field(default_factory=Endpoint)
    active_partitions: Annotated[list[TopicPartition], Array("0+")] = []
    standby_partitions: Annotated[list[TopicPartition], Array("0+")] = []


class StreamsGroupHeartbeatResponse(Message):
    """The member's epoch and the tasks it should run."""

    schema: ClassVar[Schema] = Schema(api_key=88, versions="0-1", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    member_id: Annotated[str, String("0+")] = ""
    member_epoch: Annotated[int, Int32("0+")] = 0
    heartbeat_interval_ms: Annotated[int, Int32("0+")] = 0
    acceptable_recovery_lag_legacy: Annotated[int, Int32("0")] = 0
    task_offset_interval_ms: Annotated[int, Int32("0+")] = 0
    acceptable_recovery_lag: Annotated[int, Int64("1+")] = -1
    status: Annotated[list[Status] | None, Array("0+", nullable="0+")] = []
    active_tasks: Annotated[list[TaskIds] | None, Array("0+", nullable="0+")] = None
    standby_tasks: Annotated[list[TaskIds] | None, Array("0+", nullable="0+")] = None
    warmup_tasks: Annotated[list[TaskIds] | None, Array("0+", nullable="0+")] = None
    topology_description_required: Annotated[bool, Bool("1+")] = False
    endpoint_information_epoch: Annotated[int, Int32("0+")] = 0
    partitions_by_user_endpoint: Annotated[
        list[EndpointToPartitions] | None, Array("0+", nullable="0+")
    ] = None
