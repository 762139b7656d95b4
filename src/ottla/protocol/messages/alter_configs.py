"""The messages of AlterConfigs, api key 33."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Bool, Int8, Int16, Int32, Message, Schema, String


class AlterableConfig(Message):
    name: Annotated[str, String("0+")] = ""
    value: Annotated[str | None, String("0+", nullable="0+")] = ""


class AlterConfigsResource(Message):
    resource_type: Annotated[int, Int8("0+")] = 0
    resource_name: Annotated[str, String("0+")] = ""
    configs: Annotated[list[AlterableConfig], Array("0+")] = []


class AlterConfigsRequest(Message):
    """Replace all settings of topics or brokers."""

    schema: ClassVar[Schema] = Schema(api_key=33, versions="0-2", flexible="2+")
    resources: Annotated[list[AlterConfigsResource], Array("0+")] = []
    validate_only: Annotated[bool, Bool("0+")] = False


class AlterConfigsResourceResponse(Message):
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""
    resource_type: Annotated[int, Int8("0+")] = 0
    resource_name: Annotated[str, String("0+")] = ""


class AlterConfigsResponse(Message):
    """Whether each resource's settings were replaced."""

    schema: ClassVar[Schema] = Schema(api_key=33, versions="0-2", flexible="2+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    responses: Annotated[list[AlterConfigsResourceResponse], Array("0+")] = []
