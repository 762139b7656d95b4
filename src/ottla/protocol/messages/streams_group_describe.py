"""The messages of StreamsGroupDescribe, api key 89."""

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


class StreamsGroupDescribeRequest(Message):
    """Ask for the state, topology and members of streams groups."""

    schema: ClassVar[Schema] = Schema(api_key=89, versions="0-1", flexible="0+")
    group_ids: Annotated[list[str], Array("0+", of=String)] = []
    include_authorized_operations: Annotated[bool, Bool("0+")] = False
    include_topology_description: Annotated[bool, Bool("1+")] = False


class KeyValue(Message):
    key: Annotated[str, String("0+")] = ""
    value: Annotated[str, String("0+")] = ""


class TopicInfo(Message):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[int, Int32("0+")] = 0
    replication_factor: Annotated[int, Int16("0+")] = 0
    topic_configs: Annotated[list[KeyValue], Array("0+")] = []


class Subtopology(Message):
    subtopology_id: Annotated[str, String("0+")] = ""
    source_topics: Annotated[list[str], Array("0+", of=String)] = []
    repartition_sink_topics: Annotated[list[str], Array("0+", of=String)] = []
    state_changelog_topics: Annotated[list[TopicInfo], Array("0+")] = []
    repartition_source_topics: Annotated[list[TopicInfo], Array("0+")] = []


class Topology(Message):
    epoch: Annotated[int, Int32("0+")] = 0
    subtopologies: Annotated[list[Subtopology] | None, Array("0+", nullable="0+")] = None


class Endpoint(Message):
    host: Annotated[str, String("0+")] = ""
    port: Annotated[int, Uint16("0+")] = 0


class TaskOffset(Message):
    subtopology_id: Annotated[str, String("0+")] = ""
    partition: Annotated[int, Int32("0+")] = 0
    offset: Annotated[int, Int64("0+")] = 0


class TaskIds(Message):
    subtopology_id: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []


class Assignment(Message):
    active_tasks: Annotated[list[TaskIds], Array("0+")] = []
    standby_tasks: Annotated[list[TaskIds], Array("0+")] = []
    warmup_tasks: Annotated[list[TaskIds], Array("0+")] = []


class Member(Message):
    member_id: Annotated[str, String("0+")] = ""
    member_epoch: Annotated[int, Int32("0+")] = 0
    instance_id: Annotated[str | None, String("0+", nullable="0+")] = None
    rack_id: Annotated[str | None, String("0+", nullable="0+")] = None
    client_id: Annotated[str, String("0+")] = ""
    client_host: Annotated[str, String("0+")] = ""
    topology_epoch: Annotated[int, Int32("0+")] = 0
    process_id: Annotated[str, String("0+")] = ""
    user_endpoint: Annotated[Endpoint | None, Nested("0+", nullable="0+")] = None
    client_tags: Annotated[list[KeyValue], Array("0+")] = []
    task_offsets: Annotated[list[TaskOffset], Array("0+")] = []
    task_end_offsets: Annotated[list[TaskOffset], Array("0+")] = []
    assignment: Annotated[Assignment, Nested("0+")] = field(default_factory=Assignment)
    target_assignment: Annotated[Assignment, Nested("0+")] = field(default_factory=Assignment)
    is_classic: Annotated[bool, Bool("0+")] = False


class TopologyDescriptionNode(Message):
    name: Annotated[str, String("1+")] = ""
    node_type: Annotated[int, Int8("1+")] = 0
    source_topics: Annotated[list[str], Array("1+", of=String)] = []
    sink_topic: Annotated[str | None, String("1+", nullable="1+")] = None
    stores: Annotated[list[str], Array("1+", of=String)] = []
    successors: Annotated[list[str], Array("1+", of=String)] = []


class TopologyDescriptionSubtopology(Message):
    subtopology_id: Annotated[str, String("1+")] = ""
    nodes: Annotated[list[TopologyDescriptionNode], Array("1+")] = []


class TopologyDescriptionGlobalStore(Message):
    source: Annotated[TopologyDescriptionNode, Nested("1+")] = field(
        default_factory=TopologyDescriptionNode
    )
    processor: Annotated[TopologyDescriptionNode, Nested("1+")] = field(
        default_factory=TopologyDescriptionNode
    )


class TopologyDescription(Message):
    subtopologies: Annotated[list[TopologyDescriptionSubtopology], Array("1+")] = []
    global_stores: Annotated[list[TopologyDescriptionGlobalStore], Array("1+")] = []


class DescribedGroup(Message):
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    group_id: Annotated[str, String("0+")] = ""
    group_state: Annotated[str, String("0+")] = ""
    group_epoch: Annotated[int, Int32("0+")] = 0
    assignment_epoch: Annotated[int, Int32("0+")] = 0
    topology: Annotated[Topology | None, Nested("0+", nullable="0+")] = None
    members: Annotated[list[Member], Array("0+")] = []
    authorized_operations: Annotated[int, Int32("0+")] = -2_147_483_648
    topology_description: Annotated[TopologyDescription | None, Nested("1+", nullable="1+")] = None
    topology_description_status: Annotated[int, Int8("1+")] = 0
    assignor_name: Annotated[str | None, String("1+", nullable="1+")] = None


class StreamsGroupDescribeResponse(Message):
    """State, topology, members and tasks of each group."""

    schema: ClassVar[Schema] = Schema(api_key=89, versions="0-1", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    groups: Annotated[list[DescribedGroup], Array("0+")] = []
