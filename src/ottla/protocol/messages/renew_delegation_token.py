"""The messages of RenewDelegationToken, api key 39."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Bytes, Int16, Int32, Int64, Message, Schema


class RenewDelegationTokenRequest(Message):
    """Make a token last longer."""

    schema: ClassVar[Schema] = Schema(api_key=39, versions="0-2", flexible="2+")
    hmac: Annotated[bytes, Bytes("0+")] = b""
    renew_period_ms: Annotated[int, Int64("0+")] = 0


class RenewDelegationTokenResponse(Message):
    """When the token expires now."""

    schema: ClassVar[Schema] = Schema(api_key=39, versions="0-2", flexible="2+")
    error_code: Annotated[int, Int16("0+")] = 0
    expiry_timestamp_ms: Annotated[int, Int64("0+")] = 0
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
