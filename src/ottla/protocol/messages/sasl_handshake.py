"""The messages of SaslHandshake, api key 17."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int16, Message, Schema, String


class SaslHandshakeRequest(Message):
    """Choose a SASL mechanism."""

    schema: ClassVar[Schema] = Schema(api_key=17, versions="0-1")
    mechanism: Annotated[str, String("0+")] = ""


class SaslHandshakeResponse(Message):
    """The mechanisms the broker offers."""

    schema: ClassVar[Schema] = Schema(api_key=17, versions="0-1")
    error_code: Annotated[int, Int16("0+")] = 0
    mechanisms: Annotated[list[str], Array("0+", of=String)] = []
