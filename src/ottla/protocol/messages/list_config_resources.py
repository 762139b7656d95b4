"""The messages of ListConfigResources, api key 74."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int8, Int16, Int32, Message, Schema, String


class ListConfigResourcesRequest(Message):
    """Ask which resources have settings of their own."""

    schema: ClassVar[Schema] = Schema(api_key=74, versions="0-1", flexible="0+")
    resource_types: Annotated[list[int], Array("1+", of=Int8)] = []


class ConfigResource(Message):
    resource_name: Annotated[str, String("0+")] = ""
    resource_type: Annotated[int, Int8("1+")] = 16


class ListConfigResourcesResponse(Message):
    """The names and kinds of the resources."""

    schema: ClassVar[Schema] = Schema(api_key=74, versions="0-1", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    config_resources: Annotated[list[ConfigResource], Array("0+")] = []
