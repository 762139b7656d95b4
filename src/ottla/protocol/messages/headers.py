"""The headers before requests and responses: the reference that `frames.py` is tested against."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Int16, Int32, Message, Schema, String


class RequestHeader(Message):
    """What stands before every request."""

    schema: ClassVar[Schema] = Schema(versions="0-2", flexible="2+")
    request_api_key: Annotated[int, Int16("0+")] = 0
    request_api_version: Annotated[int, Int16("0+")] = 0
    correlation_id: Annotated[int, Int32("0+")] = 0
    client_id: Annotated[str | None, String("1+", nullable="1+", compact=False)] = ""


class ResponseHeader(Message):
    """What stands before every response."""

    schema: ClassVar[Schema] = Schema(versions="0-1", flexible="1+")
    correlation_id: Annotated[int, Int32("0+")] = 0
