"""The messages of DescribeDelegationToken, api key 41."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Bytes, Int16, Int32, Int64, Message, Schema, String


class DescribeDelegationTokenOwner(Message):
    principal_type: Annotated[str, String("0+")] = ""
    principal_name: Annotated[str, String("0+")] = ""


class DescribeDelegationTokenRequest(Message):
    """Ask for the tokens of some owners."""

    schema: ClassVar[Schema] = Schema(api_key=41, versions="0-3", flexible="2+")
    owners: Annotated[list[DescribeDelegationTokenOwner] | None, Array("0+", nullable="0+")] = []


class DescribedDelegationTokenRenewer(Message):
    principal_type: Annotated[str, String("0+")] = ""
    principal_name: Annotated[str, String("0+")] = ""


class DescribedDelegationToken(Message):
    principal_type: Annotated[str, String("0+")] = ""
    principal_name: Annotated[str, String("0+")] = ""
    token_requester_principal_type: Annotated[str, String("3+")] = ""
    token_requester_principal_name: Annotated[str, String("3+")] = ""
    issue_timestamp: Annotated[int, Int64("0+")] = 0
    expiry_timestamp: Annotated[int, Int64("0+")] = 0
    max_timestamp: Annotated[int, Int64("0+")] = 0
    token_id: Annotated[str, String("0+")] = ""
    hmac: Annotated[bytes, Bytes("0+")] = b""
    renewers: Annotated[list[DescribedDelegationTokenRenewer], Array("0+")] = []


class DescribeDelegationTokenResponse(Message):
    """The tokens this user may see."""

    schema: ClassVar[Schema] = Schema(api_key=41, versions="0-3", flexible="2+")
    error_code: Annotated[int, Int16("0+")] = 0
    tokens: Annotated[list[DescribedDelegationToken], Array("0+")] = []
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
