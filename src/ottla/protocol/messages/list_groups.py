"""The messages of ListGroups, api key 16."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int16, Int32, Message, Schema, String


class ListGroupsRequest(Message):
    """Ask which groups this broker coordinates."""

    schema: ClassVar[Schema] = Schema(api_key=16, versions="0-5", flexible="3+")
    states_filter: Annotated[list[str], Array("4+", of=String)] = []
    types_filter: Annotated[list[str], Array("5+", of=String)] = []


class ListedGroup(Message):
    group_id: Annotated[str, String("0+")] = ""
    protocol_type: Annotated[str, String("0+")] = ""
    group_state: Annotated[str, String("4+")] = ""
    group_type: Annotated[str, String("5+")] = ""


class ListGroupsResponse(Message):
    """The groups, by name, type and state."""

    schema: ClassVar[Schema] = Schema(api_key=16, versions="0-5", flexible="3+")
    throttle_time_ms: Annotated[int, Int32("1+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    groups: Annotated[list[ListedGroup], Array("0+")] = []
