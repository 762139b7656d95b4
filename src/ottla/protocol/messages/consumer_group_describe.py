"""The messages of ConsumerGroupDescribe, api key 69."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import field

from ottla.protocol.message import (
    NO_UUID,
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Message,
    Nested,
    Schema,
    String,
    Uuid,
)


class ConsumerGroupDescribeRequest(Message):
    """Ask for the state and members of groups of the new protocol."""

    schema: ClassVar[Schema] = Schema(api_key=69, versions="0-1", flexible="0+")
    group_ids: Annotated[list[str], Array("0+", of=String)] = []
    include_authorized_operations: Annotated[bool, Bool("0+")] = False


class TopicPartitions(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    topic_name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []


class Assignment(Message):
    topic_partitions: Annotated[list[TopicPartitions], Array("0+")] = []


class Member(Message):
    member_id: Annotated[str, String("0+")] = ""
    instance_id: Annotated[str | None, String("0+", nullable="0+")] = None
    rack_id: Annotated[str | None, String("0+", nullable="0+")] = None
    member_epoch: Annotated[int, Int32("0+")] = 0
    client_id: Annotated[str, String("0+")] = ""
    client_host: Annotated[str, String("0+")] = ""
    subscribed_topic_names: Annotated[list[str], Array("0+", of=String)] = []
    subscribed_topic_regex: Annotated[str | None, String("0+", nullable="0+")] = None
    assignment: Annotated[Assignment, Nested("0+")] = field(default_factory=Assignment)
    target_assignment: Annotated[Assignment, Nested("0+")] = field(default_factory=Assignment)
    member_type: Annotated[int, Int8("1+")] = -1


class DescribedGroup(Message):
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    group_id: Annotated[str, String("0+")] = ""
    group_state: Annotated[str, String("0+")] = ""
    group_epoch: Annotated[int, Int32("0+")] = 0
    assignment_epoch: Annotated[int, Int32("0+")] = 0
    assignor_name: Annotated[str, String("0+")] = ""
    members: Annotated[list[Member], Array("0+")] = []
    authorized_operations: Annotated[int, Int32("0+")] = -2_147_483_648


class ConsumerGroupDescribeResponse(Message):
    """State, members and assignments of each group."""

    schema: ClassVar[Schema] = Schema(api_key=69, versions="0-1", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    groups: Annotated[list[DescribedGroup], Array("0+")] = []
