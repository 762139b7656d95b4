"""The messages of DescribeConfigs, api key 32."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Bool, Int8, Int16, Int32, Message, Schema, String


class DescribeConfigsResource(Message):
    resource_type: Annotated[int, Int8("0+")] = 0
    resource_name: Annotated[str, String("0+")] = ""
    configuration_keys: Annotated[list[str] | None, Array("0+", of=String, nullable="0+")] = []


class DescribeConfigsRequest(Message):
    """Ask for the settings of topics, brokers or groups."""

    schema: ClassVar[Schema] = Schema(api_key=32, versions="0-4", flexible="4+")
    resources: Annotated[list[DescribeConfigsResource], Array("0+")] = []
    include_synonyms: Annotated[bool, Bool("1+")] = False
    include_documentation: Annotated[bool, Bool("3+")] = False


class DescribeConfigsSynonym(Message):
    name: Annotated[str, String("1+")] = ""
    value: Annotated[str | None, String("1+", nullable="1+")] = ""
    source: Annotated[int, Int8("1+")] = 0


class DescribeConfigsResourceResult(Message):
    name: Annotated[str, String("0+")] = ""
    value: Annotated[str | None, String("0+", nullable="0+")] = ""
    read_only: Annotated[bool, Bool("0+")] = False
    is_default: Annotated[bool, Bool("0")] = False
    config_source: Annotated[int, Int8("1+")] = -1
    is_sensitive: Annotated[bool, Bool("0+")] = False
    synonyms: Annotated[list[DescribeConfigsSynonym], Array("1+")] = []
    config_type: Annotated[int, Int8("3+")] = 0
    documentation: Annotated[str | None, String("3+", nullable="3+")] = ""


class DescribeConfigsResult(Message):
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""
    resource_type: Annotated[int, Int8("0+")] = 0
    resource_name: Annotated[str, String("0+")] = ""
    configs: Annotated[list[DescribeConfigsResourceResult], Array("0+")] = []


class DescribeConfigsResponse(Message):
    """The settings, with their origin and type."""

    schema: ClassVar[Schema] = Schema(api_key=32, versions="0-4", flexible="4+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    results: Annotated[list[DescribeConfigsResult], Array("0+")] = []
