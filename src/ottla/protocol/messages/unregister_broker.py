"""The messages of UnregisterBroker, api key 64."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Int16, Int32, Message, Schema, String


class UnregisterBrokerRequest(Message):
    """Remove a broker that will not come back."""

    schema: ClassVar[Schema] = Schema(api_key=64, versions="0", flexible="0+")
    broker_id: Annotated[int, Int32("0+")] = 0


class UnregisterBrokerResponse(Message):
    """Whether the broker was removed."""

    schema: ClassVar[Schema] = Schema(api_key=64, versions="0", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""
