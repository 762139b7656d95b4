"""The messages of ReadShareGroupStateSummary, api key 87."""

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


class PartitionData(Message):
    partition: Annotated[int, Int32("0+")] = 0
    leader_epoch: Annotated[int, Int32("0+")] = 0


class ReadStateSummaryData(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[PartitionData], Array("0+")] = []


class ReadShareGroupStateSummaryRequest(Message):
    """Read where a share group's partitions start, without the details."""

    schema: ClassVar[Schema] = Schema(api_key=87, versions="0-1", flexible="0+")
    group_id: Annotated[str, String("0+")] = ""
    topics: Annotated[list[ReadStateSummaryData], Array("0+")] = []


class PartitionResult(Message):
    partition: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    state_epoch: Annotated[int, Int32("0+")] = 0
    leader_epoch: Annotated[int, Int32("0+")] = 0
    start_offset: Annotated[int, Int64("0+")] = 0
    delivery_complete_count: Annotated[int, Int32("1+")] = -1


class ReadStateSummaryResult(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[PartitionResult], Array("0+")] = []


class ReadShareGroupStateSummaryResponse(Message):
    """The start offset and epochs of each partition."""

    schema: ClassVar[Schema] = Schema(api_key=87, versions="0-1", flexible="0+")
    results: Annotated[list[ReadStateSummaryResult], Array("0+")] = []
