"""The messages of DescribeClientQuotas, api key 48."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Bool, Float64, Int8, Int16, Int32, Message, Schema, String


class ComponentData(Message):
    entity_type: Annotated[str, String("0+")] = ""
    match_type: Annotated[int, Int8("0+")] = 0
    match: Annotated[str | None, String("0+", nullable="0+")] = ""


class DescribeClientQuotasRequest(Message):
    """Ask for the quotas that match a filter."""

    schema: ClassVar[Schema] = Schema(api_key=48, versions="0-1", flexible="1+")
    components: Annotated[list[ComponentData], Array("0+")] = []
    strict: Annotated[bool, Bool("0+")] = False


class EntityData(Message):
    entity_type: Annotated[str, String("0+")] = ""
    entity_name: Annotated[str | None, String("0+", nullable="0+")] = ""


class ValueData(Message):
    key: Annotated[str, String("0+")] = ""
    value: Annotated[float, Float64("0+")] = 0.0


class EntryData(Message):
    entity: Annotated[list[EntityData], Array("0+")] = []
    values: Annotated[list[ValueData], Array("0+")] = []


class DescribeClientQuotasResponse(Message):
    """The matching quotas."""

    schema: ClassVar[Schema] = Schema(api_key=48, versions="0-1", flexible="1+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""
    entries: Annotated[list[EntryData] | None, Array("0+", nullable="0+")] = []
