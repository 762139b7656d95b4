"""The messages of DeleteShareGroupOffsets, api key 92."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import NO_UUID, Array, Int16, Int32, Message, Schema, String, Uuid


class DeleteShareGroupOffsetsRequestTopic(Message):
    topic_name: Annotated[str, String("0+")] = ""


class DeleteShareGroupOffsetsRequest(Message):
    """Delete a share group's offsets of some topics."""

    schema: ClassVar[Schema] = Schema(api_key=92, versions="0", flexible="0+")
    group_id: Annotated[str, String("0+")] = ""
    topics: Annotated[list[DeleteShareGroupOffsetsRequestTopic], Array("0+")] = []


class DeleteShareGroupOffsetsResponseTopic(Message):
    topic_name: Annotated[str, String("0+")] = ""
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None


class DeleteShareGroupOffsetsResponse(Message):
    """Whether each topic's offsets were deleted."""

    schema: ClassVar[Schema] = Schema(api_key=92, versions="0", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    responses: Annotated[list[DeleteShareGroupOffsetsResponseTopic], Array("0+")] = []
