"""The messages of CreateAcls, api key 30."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int8, Int16, Int32, Message, Schema, String


class AclCreation(Message):
    resource_type: Annotated[int, Int8("0+")] = 0
    resource_name: Annotated[str, String("0+")] = ""
    resource_pattern_type: Annotated[int, Int8("1+")] = 3
    principal: Annotated[str, String("0+")] = ""
    host: Annotated[str, String("0+")] = ""
    operation: Annotated[int, Int8("0+")] = 0
    permission_type: Annotated[int, Int8("0+")] = 0


class CreateAclsRequest(Message):
    """Add access rules."""

    schema: ClassVar[Schema] = Schema(api_key=30, versions="0-3", flexible="2+")
    creations: Annotated[list[AclCreation], Array("0+")] = []


class AclCreationResult(Message):
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""


class CreateAclsResponse(Message):
    """Whether each rule was added."""

    schema: ClassVar[Schema] = Schema(api_key=30, versions="0-3", flexible="2+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    results: Annotated[list[AclCreationResult], Array("0+")] = []
