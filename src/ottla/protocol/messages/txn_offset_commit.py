"""The messages of TxnOffsetCommit, api key 28."""

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


class TxnOffsetCommitRequestPartition(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    committed_offset: Annotated[int, Int64("0+")] = 0
    committed_leader_epoch: Annotated[int, Int32("2+")] = -1
    committed_metadata: Annotated[str | None, String("0+", nullable="0+")] = ""


class TxnOffsetCommitRequestTopic(Message):
    name: Annotated[str, String("0-5")] = ""
    topic_id: Annotated[bytes, Uuid("6+")] = NO_UUID
    partitions: Annotated[list[TxnOffsetCommitRequestPartition], Array("0+")] = []


class TxnOffsetCommitRequest(Message):
    """Store a group's offsets as part of a transaction."""

    schema: ClassVar[Schema] = Schema(api_key=28, versions="0-6", flexible="3+")
    transactional_id: Annotated[str, String("0+")] = ""
    group_id: Annotated[str, String("0+")] = ""
    producer_id: Annotated[int, Int64("0+")] = 0
    producer_epoch: Annotated[int, Int16("0+")] = 0
    generation_id_or_member_epoch: Annotated[int, Int32("3+")] = -1
    member_id: Annotated[str, String("3+")] = ""
    group_instance_id: Annotated[str | None, String("3+", nullable="3+")] = None
    topics: Annotated[list[TxnOffsetCommitRequestTopic], Array("0+")] = []


class TxnOffsetCommitResponsePartition(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0


class TxnOffsetCommitResponseTopic(Message):
    name: Annotated[str, String("0-5")] = ""
    topic_id: Annotated[bytes, Uuid("6+")] = NO_UUID
    partitions: Annotated[list[TxnOffsetCommitResponsePartition], Array("0+")] = []


class TxnOffsetCommitResponse(Message):
    """Whether each partition's offset was accepted."""

    schema: ClassVar[Schema] = Schema(api_key=28, versions="0-6", flexible="3+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    topics: Annotated[list[TxnOffsetCommitResponseTopic], Array("0+")] = []
