"""The messages of DeleteAcls, api key 31."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int8, Int16, Int32, Message, Schema, String


class DeleteAclsFilter(Message):
    resource_type_filter: Annotated[int, Int8("0+")] = 0
    resource_name_filter: Annotated[str | None, String("0+", nullable="0+")] = ""
    pattern_type_filter: Annotated[int, Int8("1+")] = 3
    principal_filter: Annotated[str | None, String("0+", nullable="0+")] = ""
    host_filter: Annotated[str | None, String("0+", nullable="0+")] = ""
    operation: Annotated[int, Int8("0+")] = 0
    permission_type: Annotated[int, Int8("0+")] = 0


class DeleteAclsRequest(Message):
    """Delete the access rules that match some filters."""

    schema: ClassVar[Schema] = Schema(api_key=31, versions="0-3", flexible="2+")
    filters: Annotated[list[DeleteAclsFilter], Array("0+")] = []


class DeleteAclsMatchingAcl(Message):
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""
    resource_type: Annotated[int, Int8("0+")] = 0
    resource_name: Annotated[str, String("0+")] = ""
    pattern_type: Annotated[int, Int8("1+")] = 3
    principal: Annotated[str, String("0+")] = ""
    host: Annotated[str, String("0+")] = ""
    operation: Annotated[int, Int8("0+")] = 0
    permission_type: Annotated[int, Int8("0+")] = 0


class DeleteAclsFilterResult(Message):
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""
    matching_acls: Annotated[list[DeleteAclsMatchingAcl], Array("0+")] = []


class DeleteAclsResponse(Message):
    """The rules each filter deleted."""

    schema: ClassVar[Schema] = Schema(api_key=31, versions="0-3", flexible="2+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    filter_results: Annotated[list[DeleteAclsFilterResult], Array("0+")] = []
