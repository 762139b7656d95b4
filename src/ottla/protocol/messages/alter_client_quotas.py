"""The messages of AlterClientQuotas, api key 49."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Bool, Float64, Int16, Int32, Message, Schema, String


class EntityData(Message):
    entity_type: Annotated[str, String("0+")] = ""
    entity_name: Annotated[str | None, String("0+", nullable="0+")] = ""


class OpData(Message):
    key: Annotated[str, String("0+")] = ""
    value: Annotated[float, Float64("0+")] = 0.0
    remove: Annotated[bool, Bool("0+")] = False


class RequestEntryData(Message):
    entity: Annotated[list[EntityData], Array("0+")] = []
    ops: Annotated[list[OpData], Array("0+")] = []


class AlterClientQuotasRequest(Message):
    """Set or remove quotas."""

    schema: ClassVar[Schema] = Schema(api_key=49, versions="0-1", flexible="1+")
    entries: Annotated[list[RequestEntryData], Array("0+")] = []
    validate_only: Annotated[bool, Bool("0+")] = False


class ResponseEntryData(Message):
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""
    entity: Annotated[list[EntityData], Array("0+")] = []


class AlterClientQuotasResponse(Message):
    """Whether each entity's quotas were changed."""

    schema: ClassVar[Schema] = Schema(api_key=49, versions="0-1", flexible="1+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    entries: Annotated[list[ResponseEntryData], Array("0+")] = []
