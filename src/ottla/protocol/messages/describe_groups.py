"""The messages of DescribeGroups, api key 15."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Bool, Bytes, Int16, Int32, Message, Schema, String


class DescribeGroupsRequest(Message):
    """Ask for the state and the members of classic groups."""

    schema: ClassVar[Schema] = Schema(api_key=15, versions="0-6", flexible="5+")
    groups: Annotated[list[str], Array("0+", of=String)] = []
    include_authorized_operations: Annotated[bool, Bool("3+")] = False


class DescribedGroupMember(Message):
    member_id: Annotated[str, String("0+")] = ""
    group_instance_id: Annotated[str | None, String("4+", nullable="4+")] = None
    client_id: Annotated[str, String("0+")] = ""
    client_host: Annotated[str, String("0+")] = ""
    member_metadata: Annotated[bytes, Bytes("0+")] = b""
    member_assignment: Annotated[bytes, Bytes("0+")] = b""


class DescribedGroup(Message):
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("6+", nullable="6+")] = None
    group_id: Annotated[str, String("0+")] = ""
    group_state: Annotated[str, String("0+")] = ""
    protocol_type: Annotated[str, String("0+")] = ""
    protocol_data: Annotated[str, String("0+")] = ""
    members: Annotated[list[DescribedGroupMember], Array("0+")] = []
    authorized_operations: Annotated[int, Int32("3+")] = -2_147_483_648


class DescribeGroupsResponse(Message):
    """State, protocol and members of each group."""

    schema: ClassVar[Schema] = Schema(api_key=15, versions="0-6", flexible="5+")
    throttle_time_ms: Annotated[int, Int32("1+")] = 0
    groups: Annotated[list[DescribedGroup], Array("0+")] = []
