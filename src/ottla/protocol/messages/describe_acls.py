"""The messages of DescribeAcls, api key 29."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int8, Int16, Int32, Message, Schema, String


class DescribeAclsRequest(Message):
    """Ask for the access rules that match a filter."""

    schema: ClassVar[Schema] = Schema(api_key=29, versions="0-3", flexible="2+")
    resource_type_filter: Annotated[int, Int8("0+")] = 0
    resource_name_filter: Annotated[str | None, String("0+", nullable="0+")] = ""
    pattern_type_filter: Annotated[int, Int8("1+")] = 3
    principal_filter: Annotated[str | None, String("0+", nullable="0+")] = ""
    host_filter: Annotated[str | None, String("0+", nullable="0+")] = ""
    operation: Annotated[int, Int8("0+")] = 0
    permission_type: Annotated[int, Int8("0+")] = 0


class AclDescription(Message):
    principal: Annotated[str, String("0+")] = ""
    host: Annotated[str, String("0+")] = ""
    operation: Annotated[int, Int8("0+")] = 0
    permission_type: Annotated[int, Int8("0+")] = 0


class DescribeAclsResource(Message):
    resource_type: Annotated[int, Int8("0+")] = 0
    resource_name: Annotated[str, String("0+")] = ""
    pattern_type: Annotated[int, Int8("1+")] = 3
    acls: Annotated[list[AclDescription], Array("0+")] = []


class DescribeAclsResponse(Message):
    """The matching access rules, by resource."""

    schema: ClassVar[Schema] = Schema(api_key=29, versions="0-3", flexible="2+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""
    resources: Annotated[list[DescribeAclsResource], Array("0+")] = []
