"""The messages of DeleteTopics, api key 20."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import NO_UUID, Array, Int16, Int32, Message, Schema, String, Uuid


class DeleteTopicState(Message):
    name: Annotated[str | None, String("6+", nullable="6+")] = None
    topic_id: Annotated[bytes, Uuid("6+")] = NO_UUID


class DeleteTopicsRequest(Message):
    """Delete topics by name or by id."""

    schema: ClassVar[Schema] = Schema(api_key=20, versions="0-6", flexible="4+")
    topics: Annotated[list[DeleteTopicState], Array("6+")] = []
    topic_names: Annotated[list[str], Array("0-5", of=String)] = []
    timeout_ms: Annotated[int, Int32("0+")] = 0


class DeletableTopicResult(Message):
    name: Annotated[str | None, String("0+", nullable="6+")] = ""
    topic_id: Annotated[bytes, Uuid("6+")] = NO_UUID
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("5+", nullable="5+")] = None


class DeleteTopicsResponse(Message):
    """Which topics were deleted."""

    schema: ClassVar[Schema] = Schema(api_key=20, versions="0-6", flexible="4+")
    throttle_time_ms: Annotated[int, Int32("1+")] = 0
    responses: Annotated[list[DeletableTopicResult], Array("0+")] = []
