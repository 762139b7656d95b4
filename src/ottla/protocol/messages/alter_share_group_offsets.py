"""The messages of AlterShareGroupOffsets, api key 91."""

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


class AlterShareGroupOffsetsRequestPartition(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    start_offset: Annotated[int, Int64("0+")] = 0


class AlterShareGroupOffsetsRequestTopic(Message):
    topic_name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[AlterShareGroupOffsetsRequestPartition], Array("0+")] = []


class AlterShareGroupOffsetsRequest(Message):
    """Set where a share group starts reading."""

    schema: ClassVar[Schema] = Schema(api_key=91, versions="0", flexible="0+")
    group_id: Annotated[str, String("0+")] = ""
    topics: Annotated[list[AlterShareGroupOffsetsRequestTopic], Array("0+")] = []


class AlterShareGroupOffsetsResponsePartition(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None


class AlterShareGroupOffsetsResponseTopic(Message):
    topic_name: Annotated[str, String("0+")] = ""
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[AlterShareGroupOffsetsResponsePartition], Array("0+")] = []


class AlterShareGroupOffsetsResponse(Message):
    """Whether each partition's start was set."""

    schema: ClassVar[Schema] = Schema(api_key=91, versions="0", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    responses: Annotated[list[AlterShareGroupOffsetsResponseTopic], Array("0+")] = []
