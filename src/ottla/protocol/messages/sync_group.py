"""The messages of SyncGroup, api key 14."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Bytes, Int16, Int32, Message, Schema, String


class SyncGroupRequestAssignment(Message):
    member_id: Annotated[str, String("0+")] = ""
    assignment: Annotated[bytes, Bytes("0+")] = b""


class SyncGroupRequest(Message):
    """Hand in the leader's assignment and wait for one's own."""

    schema: ClassVar[Schema] = Schema(api_key=14, versions="0-5", flexible="4+")
    group_id: Annotated[str, String("0+")] = ""
    generation_id: Annotated[int, Int32("0+")] = 0
    member_id: Annotated[str, String("0+")] = ""
    group_instance_id: Annotated[str | None, String("3+", nullable="3+")] = None
    protocol_type: Annotated[str | None, String("5+", nullable="5+")] = None
    protocol_name: Annotated[str | None, String("5+", nullable="5+")] = None
    assignments: Annotated[list[SyncGroupRequestAssignment], Array("0+")] = []


class SyncGroupResponse(Message):
    """The member's own assignment."""

    schema: ClassVar[Schema] = Schema(api_key=14, versions="0-5", flexible="4+")
    throttle_time_ms: Annotated[int, Int32("1+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    protocol_type: Annotated[str | None, String("5+", nullable="5+")] = None
    protocol_name: Annotated[str | None, String("5+", nullable="5+")] = None
    assignment: Annotated[bytes, Bytes("0+")] = b""
