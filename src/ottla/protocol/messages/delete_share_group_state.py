"""The messages of DeleteShareGroupState, api key 86."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import NO_UUID, Array, Int16, Int32, Message, Schema, String, Uuid


class PartitionData(Message):
    partition: Annotated[int, Int32("0+")] = 0


class DeleteStateData(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[PartitionData], Array("0+")] = []


class DeleteShareGroupStateRequest(Message):
    """Delete the stored state of a share group's partitions."""

    schema: ClassVar[Schema] = Schema(api_key=86, versions="0", flexible="0+")
    group_id: Annotated[str, String("0+")] = ""
    topics: Annotated[list[DeleteStateData], Array("0+")] = []


class PartitionResult(Message):
    partition: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None


class DeleteStateResult(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[PartitionResult], Array("0+")] = []


class DeleteShareGroupStateResponse(Message):
    """Whether each partition's state was deleted."""

    schema: ClassVar[Schema] = Schema(api_key=86, versions="0", flexible="0+")
    results: Annotated[list[DeleteStateResult], Array("0+")] = []
