"""The messages of CreateDelegationToken, api key 38."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Bytes, Int16, Int32, Int64, Message, Schema, String


class CreatableRenewers(Message):
    principal_type: Annotated[str, String("0+")] = ""
    principal_name: Annotated[str, String("0+")] = ""


class CreateDelegationTokenRequest(Message):
    """Ask for a token to authenticate with later."""

    schema: ClassVar[Schema] = Schema(api_key=38, versions="0-3", flexible="2+")
    owner_principal_type: Annotated[str | None, String("3+", nullable="3+")] = ""
    owner_principal_name: Annotated[str | None, String("3+", nullable="3+")] = ""
    renewers: Annotated[list[CreatableRenewers], Array("0+")] = []
    max_lifetime_ms: Annotated[int, Int64("0+")] = 0


class CreateDelegationTokenResponse(Message):
    """The token, its secret and its times."""

    schema: ClassVar[Schema] = Schema(api_key=38, versions="0-3", flexible="2+")
    error_code: Annotated[int, Int16("0+")] = 0
    principal_type: Annotated[str, String("0+")] = ""
    principal_name: Annotated[str, String("0+")] = ""
    token_requester_principal_type: Annotated[str, String("3+")] = ""
    token_requester_principal_name: Annotated[str, String("3+")] = ""
    issue_timestamp_ms: Annotated[int, Int64("0+")] = 0
    expiry_timestamp_ms: Annotated[int, Int64("0+")] = 0
    max_timestamp_ms: Annotated[int, Int64("0+")] = 0
    token_id: Annotated[str, String("0+")] = ""
    hmac: Annotated[bytes, Bytes("0+")] = b""
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
