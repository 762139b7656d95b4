"""The messages of ConsumerGroupHeartbeat, api key 68."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import (
    NO_UUID,
    Array,
    Int16,
    Int32,
    Message,
    Nested,
    Schema,
    String,
    Uuid,
)


class TopicPartitions(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []


class ConsumerGroupHeartbeatRequest(Message):
    """Join, stay in or leave a group of the new protocol, saying what changed."""

    schema: ClassVar[Schema] = Schema(api_key=68, versions="0-1", flexible="0+")
    group_id: Annotated[str, String("0+")] = ""
    member_id: Annotated[str, String("0+")] = ""
    member_epoch: Annotated[int, Int32("0+")] = 0
    instance_id: Annotated[str | None, String("0+", nullable="0+")] = None
    rack_id: Annotated[str | None, String("0+", nullable="0+")] = None
    rebalance_timeout_ms: Annotated[int, Int32("0+")] = -1
    subscribed_topic_names: Annotated[list[str] | None, Array("0+", of=String, nullable="0+")] = (
        None
    )
    subscribed_topic_regex: Annotated[str | None, String("1+", nullable="1+")] = None
    server_assignor: Annotated[str | None, String("0+", nullable="0+")] = None
    topic_partitions: Annotated[list[TopicPartitions] | None, Array("0+", nullable="0+")] = None


class Assignment(Message):
    topic_partitions: Annotated[list[TopicPartitions], Array("0+")] = []


class ConsumerGroupHeartbeatResponse(Message):
    """The member's epoch and what it should own."""

    schema: ClassVar[Schema] = Schema(api_key=68, versions="0-1", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    member_id: Annotated[str | None, String("0+", nullable="0+")] = None
    member_epoch: Annotated[int, Int32("0+")] = 0
    heartbeat_interval_ms: Annotated[int, Int32("0+")] = 0
    assignment: Annotated[Assignment | None, Nested("0+", nullable="0+")] = None
