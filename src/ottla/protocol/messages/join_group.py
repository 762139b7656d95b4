"""The messages of JoinGroup, api key 11."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Bool, Bytes, Int16, Int32, Message, Schema, String


class JoinGroupRequestProtocol(Message):
    name: Annotated[str, String("0+")] = ""
    metadata: Annotated[bytes, Bytes("0+")] = b""


class JoinGroupRequest(Message):
    """Enter a consumer group or stay in it through a rebalance."""

    schema: ClassVar[Schema] = Schema(api_key=11, versions="0-9", flexible="6+")
    group_id: Annotated[str, String("0+")] = ""
    session_timeout_ms: Annotated[int, Int32("0+")] = 0
    rebalance_timeout_ms: Annotated[int, Int32("1+")] = -1
    member_id: Annotated[str, String("0+")] = ""
    group_instance_id: Annotated[str | None, String("5+", nullable="5+")] = None
    protocol_type: Annotated[str, String("0+")] = ""
    protocols: Annotated[list[JoinGroupRequestProtocol], Array("0+")] = []
    reason: Annotated[str | None, String("8+", nullable="8+")] = None


class JoinGroupResponseMember(Message):
    member_id: Annotated[str, String("0+")] = ""
    group_instance_id: Annotated[str | None, String("5+", nullable="5+")] = None
    metadata: Annotated[bytes, Bytes("0+")] = b""


class JoinGroupResponse(Message):
    """The generation joined, its leader and, for the leader, all members."""

    schema: ClassVar[Schema] = Schema(api_key=11, versions="0-9", flexible="6+")
    throttle_time_ms: Annotated[int, Int32("2+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    generation_id: Annotated[int, Int32("0+")] = -1
    protocol_type: Annotated[str | None, String("7+", nullable="7+")] = None
    protocol_name: Annotated[str | None, String("0+", nullable="7+")] = ""
    leader: Annotated[str, String("0+")] = ""
    skip_assignment: Annotated[bool, Bool("9+")] = False
    member_id: Annotated[str, String("0+")] = ""
    members: Annotated[list[JoinGroupResponseMember], Array("0+")] = []
