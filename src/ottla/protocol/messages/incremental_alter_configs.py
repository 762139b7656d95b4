"""The messages of IncrementalAlterConfigs, api key 44."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Bool, Int8, Int16, Int32, Message, Schema, String


class AlterableConfig(Message):
    name: Annotated[str, String("0+")] = ""
    config_operation: Annotated[int, Int8("0+")] = 0
    value: Annotated[str | None, String("0+", nullable="0+")] = ""


class AlterConfigsResource(Message):
    resource_type: Annotated[int, Int8("0+")] = 0
    resource_name: Annotated[str, String("0+")] = ""
    configs: Annotated[list[AlterableConfig], Array("0+")] = []


class IncrementalAlterConfigsRequest(Message):
    """Set, delete, append to or subtract from single settings."""

    schema: ClassVar[Schema] = Schema(api_key=44, versions="0-1", flexible="1+")
    resources: Annotated[list[AlterConfigsResource], Array("0+")] = []
    validate_only: Annotated[bool, Bool("0+")] = False


class AlterConfigsResourceResponse(Message):
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""
    resource_type: Annotated[int, Int8("0+")] = 0
    resource_name: Annotated[str, String("0+")] = ""


class IncrementalAlterConfigsResponse(Message):
    """Whether each resource's settings were changed."""

    schema: ClassVar[Schema] = Schema(api_key=44, versions="0-1", flexible="1+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    responses: Annotated[list[AlterConfigsResourceResponse], Array("0+")] = []
