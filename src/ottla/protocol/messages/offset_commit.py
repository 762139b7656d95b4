"""The messages of OffsetCommit, api key 8."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import (
    NO_UUID,
    Array,
    Int16,
    Int32,
    Int64,
    Message,
    Schema,
    String,
    Uuid,
)


class OffsetCommitRequestPartition(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    committed_offset: Annotated[int, Int64("0+")] = 0
    committed_leader_epoch: Annotated[int, Int32("6+")] = -1
    commit_timestamp: Annotated[int, Int64("1")] = -1
    committed_metadata: Annotated[str | None, String("0+", nullable="0+")] = ""


class OffsetCommitRequestTopic(Message):
    name: Annotated[str, String("0-9")] = ""
    topic_id: Annotated[bytes, Uuid("10+")] = NO_UUID
    partitions: Annotated[list[OffsetCommitRequestPartition], Array("0+")] = []


class OffsetCommitRequest(Message):
    """Store how far a group has read."""

    schema: ClassVar[Schema] = Schema(api_key=8, versions="0-10", flexible="8+")
    group_id: Annotated[str, String("0+")] = ""
    generation_id_or_member_epoch: Annotated[int, Int32("1+")] = -1
    member_id: Annotated[str, String("1+")] = ""
    group_instance_id: Annotated[str | None, String("7+", nullable="7+")] = None
    retention_time_ms: Annotated[int, Int64("2-4")] = -1
    topics: Annotated[list[OffsetCommitRequestTopic], Array("0+")] = []


class OffsetCommitResponsePartition(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0


class OffsetCommitResponseTopic(Message):
    name: Annotated[str, String("0-9")] = ""
    topic_id: Annotated[bytes, Uuid("10+")] = NO_UUID
    partitions: Annotated[list[OffsetCommitResponsePartition], Array("0+")] = []


class OffsetCommitResponse(Message):
    """Whether each partition's offset was stored."""

    schema: ClassVar[Schema] = Schema(api_key=8, versions="0-10", flexible="8+")
    throttle_time_ms: Annotated[int, Int32("3+")] = 0
    topics: Annotated[list[OffsetCommitResponseTopic], Array("0+")] = []
