"""The messages of WriteShareGroupState, api key 85."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import (
    NO_UUID,
    Array,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Schema,
    String,
    Uuid,
)


class StateBatch(Message):
    first_offset: Annotated[int, Int64("0+")] = 0
    last_offset: Annotated[int, Int64("0+")] = 0
    delivery_state: Annotated[int, Int8("0+")] = 0
    delivery_count: Annotated[int, Int16("0+")] = 0


class PartitionData(Message):
    partition: Annotated[int, Int32("0+")] = 0
    state_epoch: Annotated[int, Int32("0+")] = 0
    leader_epoch: Annotated[int, Int32("0+")] = 0
    start_offset: Annotated[int, Int64("0+")] = 0
    delivery_complete_count: Annotated[int, Int32("1+")] = -1
    state_batches: Annotated[list[StateBatch], Array("0+")] = []


class WriteStateData(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[PartitionData], Array("0+")] = []


class WriteShareGroupStateRequest(Message):
    """Store the state of a share group's partitions."""

    schema: ClassVar[Schema] = Schema(api_key=85, versions="0-1", flexible="0+")
    group_id: Annotated[str, String("0+")] = ""
    topics: Annotated[list[WriteStateData], Array("0+")] = []


class PartitionResult(Message):
    partition: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None


class WriteStateResult(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[PartitionResult], Array("0+")] = []


class WriteShareGroupStateResponse(Message):
    """Whether each partition's state was stored."""

    schema: ClassVar[Schema] = Schema(api_key=85, versions="0-1", flexible="0+")
    results: Annotated[list[WriteStateResult], Array("0+")] = []
