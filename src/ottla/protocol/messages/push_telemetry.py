"""The messages of PushTelemetry, api key 72."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import NO_UUID, Bool, Bytes, Int8, Int16, Int32, Message, Schema, Uuid


class PushTelemetryRequest(Message):
    """Send client metrics."""

    schema: ClassVar[Schema] = Schema(api_key=72, versions="0", flexible="0+")
    client_instance_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    subscription_id: Annotated[int, Int32("0+")] = 0
    terminating: Annotated[bool, Bool("0+")] = False
    compression_type: Annotated[int, Int8("0+")] = 0
    metrics: Annotated[bytes, Bytes("0+")] = b""


class PushTelemetryResponse(Message):
    """Whether the metrics were taken."""

    schema: ClassVar[Schema] = Schema(api_key=72, versions="0", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
