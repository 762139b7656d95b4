"""The messages of ShareGroupHeartbeat, api key 76."""

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


class ShareGroupHeartbeatRequest(Message):
    """Join, stay in or leave a share group."""

    schema: ClassVar[Schema] = Schema(api_key=76, versions="0-1", flexible="0+", unstable="0")
    group_id: Annotated[str, String("0+")] = ""
    member_id: Annotated[str, String("0+")] = ""
    member_epoch: Annotated[int, Int32("0+")] = 0
    rack_id: Annotated[str | None, String("0+", nullable="0+")] = None
    subscribed_topic_names: Annotated[list[str] | None, Array("0+", of=String, nullable="0+")] = (
        None
    )


class TopicPartitions(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []


class Assignment(Message):
    topic_partitions: Annotated[list[TopicPartitions], Array("0+")] = []


class ShareGroupHeartbeatResponse(Message):
    """The member's epoch and what it may read."""

    schema: ClassVar[Schema] = Schema(api_key=76, versions="0-1", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    member_id: Annotated[str | None, String("0+", nullable="0+")] = None
    member_epoch: Annotated[int, Int32("0+")] = 0
    heartbeat_interval_ms: Annotated[int, Int32("0+")] = 0
    assignment: Annotated[Assignment | None, Nested("0+", nullable="0+")] = None
