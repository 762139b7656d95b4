"""The messages of GetTelemetrySubscriptions, api key 71."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import (
    NO_UUID,
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Message,
    Schema,
    String,
    Uuid,
)


class GetTelemetrySubscriptionsRequest(Message):
    """Ask which client metrics the broker wants."""

    schema: ClassVar[Schema] = Schema(api_key=71, versions="0", flexible="0+")
    client_instance_id: Annotated[bytes, Uuid("0+")] = NO_UUID


class GetTelemetrySubscriptionsResponse(Message):
    """The metrics wanted, and how often."""

    schema: ClassVar[Schema] = Schema(api_key=71, versions="0", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    client_instance_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    subscription_id: Annotated[int, Int32("0+")] = 0
    accepted_compression_types: Annotated[list[int], Array("0+", of=Int8)] = []
    push_interval_ms: Annotated[int, Int32("0+")] = 0
    telemetry_max_bytes: Annotated[int, Int32("0+")] = 0
    delta_temporality: Annotated[bool, Bool("0+")] = False
    requested_metrics: Annotated[list[str], Array("0+", of=String)] = []
