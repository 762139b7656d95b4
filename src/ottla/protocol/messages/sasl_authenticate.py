"""The messages of SaslAuthenticate, api key 36."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Bytes, Int16, Int64, Message, Schema, String


class SaslAuthenticateRequest(Message):
    """Carry one step of a SASL exchange."""

    schema: ClassVar[Schema] = Schema(api_key=36, versions="0-2", flexible="2+")
    auth_bytes: Annotated[bytes, Bytes("0+")] = b""


class SaslAuthenticateResponse(Message):
    """The broker's side of the step, and how long the session lasts."""

    schema: ClassVar[Schema] = Schema(api_key=36, versions="0-2", flexible="2+")
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""
    auth_bytes: Annotated[bytes, Bytes("0+")] = b""
    session_lifetime_ms: Annotated[int, Int64("1+")] = 0
