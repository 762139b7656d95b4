"""The messages of ReadShareGroupState, api key 84."""

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


class PartitionData(Message):
    partition: Annotated[int, Int32("0+")] = 0
    leader_epoch: Annotated[int, Int32("0+")] = 0


class ReadStateData(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[PartitionData], Array("0+")] = []


class ReadShareGroupStateRequest(Message):
    """Read the stored state of a share group's partitions."""

    schema: ClassVar[Schema] = Schema(api_key=84, versions="0", flexible="0+")
    group_id: Annotated[str, String("0+")] = ""
    topics: Annotated[list[ReadStateData], Array("0+")] = []


class StateBatch(Message):
    first_offset: Annotated[int, Int64("0+")] = 0
    last_offset: Annotated[int, Int64("0+")] = 0
    delivery_state: Annotated[int, Int8("0+")] = 0
    delivery_count: Annotated[int, Int16("0+")] = 0


class PartitionResult(Message):
    partition: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    state_epoch: Annotated[int, Int32("0+")] = 0
    start_offset: Annotated[int, Int64("0+")] = 0
    state_batches: Annotated[list[StateBatch], Array("0+")] = []


class ReadStateResult(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[PartitionResult], Array("0+")] = []


class ReadShareGroupStateResponse(Message):
    """The stored state of each partition."""

    schema: ClassVar[Schema] = Schema(api_key=84, versions="0", flexible="0+")
    results: Annotated[list[ReadStateResult], Array("0+")] = []
