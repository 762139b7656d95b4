"""The messages of LeaveGroup, api key 13."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int16, Int32, Message, Schema, String


class MemberIdentity(Message):
    member_id: Annotated[str, String("3+")] = ""
    group_instance_id: Annotated[str | None, String("3+", nullable="3+")] = None
    reason: Annotated[str | None, String("5+", nullable="5+")] = None


class LeaveGroupRequest(Message):
    """Take members out of their group."""

    schema: ClassVar[Schema] = Schema(api_key=13, versions="0-5", flexible="4+")
    group_id: Annotated[str, String("0+")] = ""
    member_id: Annotated[str, String("0-2")] = ""
    members: Annotated[list[MemberIdentity], Array("3+")] = []


class MemberResponse(Message):
    member_id: Annotated[str, String("3+")] = ""
    group_instance_id: Annotated[str | None, String("3+", nullable="3+")] = ""
    error_code: Annotated[int, Int16("3+")] = 0


class LeaveGroupResponse(Message):
    """Whether each member has left."""

    schema: ClassVar[Schema] = Schema(api_key=13, versions="0-5", flexible="4+")
    throttle_time_ms: Annotated[int, Int32("1+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    members: Annotated[list[MemberResponse], Array("3+")] = []
