"""The messages of OffsetDelete, api key 47."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int16, Int32, Message, Schema, String


class OffsetDeleteRequestPartition(Message):
    partition_index: Annotated[int, Int32("0+")] = 0


class OffsetDeleteRequestTopic(Message):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[OffsetDeleteRequestPartition], Array("0+")] = []


class OffsetDeleteRequest(Message):
    """Delete a group's stored offsets of some partitions."""

    schema: ClassVar[Schema] = Schema(api_key=47, versions="0")
    group_id: Annotated[str, String("0+")] = ""
    topics: Annotated[list[OffsetDeleteRequestTopic], Array("0+")] = []


class OffsetDeleteResponsePartition(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0


class OffsetDeleteResponseTopic(Message):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[OffsetDeleteResponsePartition], Array("0+")] = []


class OffsetDeleteResponse(Message):
    """Whether each offset was deleted."""

    schema: ClassVar[Schema] = Schema(api_key=47, versions="0")
    error_code: Annotated[int, Int16("0+")] = 0
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    topics: Annotated[list[OffsetDeleteResponseTopic], Array("0+")] = []
