"""The messages of DescribeUserScramCredentials, api key 50."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int8, Int16, Int32, Message, Schema, String


class UserName(Message):
    name: Annotated[str, String("0+")] = ""


class DescribeUserScramCredentialsRequest(Message):
    """Ask which SCRAM credentials users have."""

    schema: ClassVar[Schema] = Schema(api_key=50, versions="0", flexible="0+")
    users: Annotated[list[UserName] | None, Array("0+", nullable="0+")] = []


class CredentialInfo(Message):
    mechanism: Annotated[int, Int8("0+")] = 0
    iterations: Annotated[int, Int32("0+")] = 0


class DescribeUserScramCredentialsResult(Message):
    user: Annotated[str, String("0+")] = ""
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""
    credential_infos: Annotated[list[CredentialInfo], Array("0+")] = []


class DescribeUserScramCredentialsResponse(Message):
    """The mechanisms and iteration counts of each user."""

    schema: ClassVar[Schema] = Schema(api_key=50, versions="0", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""
    results: Annotated[list[DescribeUserScramCredentialsResult], Array("0+")] = []
