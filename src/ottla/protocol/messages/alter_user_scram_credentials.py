"""The messages of AlterUserScramCredentials, api key 51."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Bytes, Int8, Int16, Int32, Message, Schema, String


class ScramCredentialDeletion(Message):
    name: Annotated[str, String("0+")] = ""
    mechanism: Annotated[int, Int8("0+")] = 0


class ScramCredentialUpsertion(Message):
    name: Annotated[str, String("0+")] = ""
    mechanism: Annotated[int, Int8("0+")] = 0
    iterations: Annotated[int, Int32("0+")] = 0
    salt: Annotated[bytes, Bytes("0+")] = b""
    salted_password: Annotated[bytes, Bytes("0+")] = b""


class AlterUserScramCredentialsRequest(Message):
    """Add, change or delete SCRAM credentials."""

    schema: ClassVar[Schema] = Schema(api_key=51, versions="0", flexible="0+")
    deletions: Annotated[list[ScramCredentialDeletion], Array("0+")] = []
    upsertions: Annotated[list[ScramCredentialUpsertion], Array("0+")] = []


class AlterUserScramCredentialsResult(Message):
    user: Annotated[str, String("0+")] = ""
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""


class AlterUserScramCredentialsResponse(Message):
    """Whether each user's credentials were changed."""

    schema: ClassVar[Schema] = Schema(api_key=51, versions="0", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    results: Annotated[list[AlterUserScramCredentialsResult], Array("0+")] = []
