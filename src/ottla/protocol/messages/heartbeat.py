"""The messages of Heartbeat, api key 12."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Int16, Int32, Message, Schema, String


class HeartbeatRequest(Message):
    """Tell the coordinator that a member is alive."""

    schema: ClassVar[Schema] = Schema(api_key=12, versions="0-4", flexible="4+")
    group_id: Annotated[str, String("0+")] = ""
    generation_id: Annotated[int, Int32("0+")] = 0
    member_id: Annotated[str, String("0+")] = ""
    group_instance_id: Annotated[str | None, String("3+", nullable="3+")] = None


class HeartbeatResponse(Message):
    """Whether the member may go on."""

    schema: ClassVar[Schema] = Schema(api_key=12, versions="0-4", flexible="4+")
    throttle_time_ms: Annotated[int, Int32("1+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
