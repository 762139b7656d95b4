"""The messages of DeleteGroups, api key 42."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int16, Int32, Message, Schema, String


class DeleteGroupsRequest(Message):
    """Delete empty groups."""

    schema: ClassVar[Schema] = Schema(api_key=42, versions="0-3", flexible="2+")
    groups_names: Annotated[list[str], Array("0+", of=String)] = []


class DeletableGroupResult(Message):
    group_id: Annotated[str, String("0+")] = ""
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("3+", nullable="3+")] = None


class DeleteGroupsResponse(Message):
    """Whether each group was deleted."""

    schema: ClassVar[Schema] = Schema(api_key=42, versions="0-3", flexible="2+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    results: Annotated[list[DeletableGroupResult], Array("0+")] = []
