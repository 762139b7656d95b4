"""The messages of DescribeShareGroupOffsets, api key 90."""

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


class DescribeShareGroupOffsetsRequestTopic(Message):
    topic_name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []


class DescribeShareGroupOffsetsRequestGroup(Message):
    group_id: Annotated[str, String("0+")] = ""
    topics: Annotated[
        list[DescribeShareGroupOffsetsRequestTopic] | None, Array("0+", nullable="0+")
    ] = []


class DescribeShareGroupOffsetsRequest(Message):
    """Ask where share groups start reading."""

    schema: ClassVar[Schema] = Schema(api_key=90, versions="0-1", flexible="0+")
    groups: Annotated[list[DescribeShareGroupOffsetsRequestGroup], Array("0+")] = []


class DescribeShareGroupOffsetsResponsePartition(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    start_offset: Annotated[int, Int64("0+")] = 0
    leader_epoch: Annotated[int, Int32("0+")] = 0
    lag: Annotated[int, Int64("1+")] = -1
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None


class DescribeShareGroupOffsetsResponseTopic(Message):
    topic_name: Annotated[str, String("0+")] = ""
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[DescribeShareGroupOffsetsResponsePartition], Array("0+")] = []


class DescribeShareGroupOffsetsResponseGroup(Message):
    group_id: Annotated[str, String("0+")] = ""
    topics: Annotated[list[DescribeShareGroupOffsetsResponseTopic], Array("0+")] = []
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None


class DescribeShareGroupOffsetsResponse(Message):
    """The start offset and lag of each partition."""

    schema: ClassVar[Schema] = Schema(api_key=90, versions="0-1", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    groups: Annotated[list[DescribeShareGroupOffsetsResponseGroup], Array("0+")] = []
