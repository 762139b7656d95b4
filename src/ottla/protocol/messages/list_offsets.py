"""The messages of ListOffsets, api key 2."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int8, Int16, Int32, Int64, Message, Schema, String


class ListOffsetsPartition(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    current_leader_epoch: Annotated[int, Int32("4+")] = -1
    timestamp: Annotated[int, Int64("0+")] = 0
    max_num_offsets: Annotated[int, Int32("0")] = 1


class ListOffsetsTopic(Message):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[ListOffsetsPartition], Array("0+")] = []


class ListOffsetsRequest(Message):
    """Find offsets by timestamp or by one of the special timestamps."""

    schema: ClassVar[Schema] = Schema(api_key=2, versions="0-11", flexible="6+")
    replica_id: Annotated[int, Int32("0+")] = 0
    isolation_level: Annotated[int, Int8("2+")] = 0
    topics: Annotated[list[ListOffsetsTopic], Array("0+")] = []
    timeout_ms: Annotated[int, Int32("10+")] = 0


class ListOffsetsPartitionResponse(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    old_style_offsets: Annotated[list[int], Array("0", of=Int64)] = []
    timestamp: Annotated[int, Int64("1+")] = -1
    offset: Annotated[int, Int64("1+")] = -1
    leader_epoch: Annotated[int, Int32("4+")] = -1


class ListOffsetsTopicResponse(Message):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[ListOffsetsPartitionResponse], Array("0+")] = []


class ListOffsetsResponse(Message):
    """The offset found for each partition."""

    schema: ClassVar[Schema] = Schema(api_key=2, versions="0-11", flexible="6+")
    throttle_time_ms: Annotated[int, Int32("2+")] = 0
    topics: Annotated[list[ListOffsetsTopicResponse], Array("0+")] = []
