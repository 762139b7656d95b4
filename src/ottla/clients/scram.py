"""Passwords of users for SCRAM: which there are, set one, delete one."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from ottla.clients.client import CONTROLLER, Client
from ottla.clients.failures import check_answer
from ottla.errors import ErrorCode
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

ITERATIONS: Final = 4096
_SALT_BYTES: Final = 24


class ScramMechanism(IntEnum):
    """By its number on the wire."""

    SHA_256 = 1
    SHA_512 = 2

    @property
    def hash_name(self) -> str:
        """As hashlib calls it."""
        return "sha256" if self is ScramMechanism.SHA_256 else "sha512"


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """That a user has a password of some kind; never the password."""

    user: str
    mechanism: ScramMechanism
    iterations: int


async def describe_scram(client: Client, users: Sequence[str] = ()) -> list[ScramCredential]:
    """The credentials of the users, or of all."""
    names = [UserName(name=user) for user in users] if users else None
    request = DescribeUserScramCredentialsRequest(users=names)

    async def attempt() -> list[ScramCredential]:
        response = await client.call(request, DescribeUserScramCredentialsResponse)
        check_answer(response.error_code, "the credentials", response.error_message)
        found: list[ScramCredential] = []
        for row in response.results:
            if row.error_code == ErrorCode.RESOURCE_NOT_FOUND:
                continue
            check_answer(row.error_code, f"user {row.user!r}", row.error_message)
            found += [
                ScramCredential(row.user, ScramMechanism(each.mechanism), each.iterations)
                for each in row.credential_infos
            ]
        return found

    return await client.retrying(attempt)


async def set_scram_password(
    client: Client,
    user: str,
    password: str,
    *,
    mechanism: ScramMechanism = ScramMechanism.SHA_256,
    iterations: int = ITERATIONS,
) -> None:
    """Gives a user a password; it is salted here and never leaves this process."""
    salt = secrets.token_bytes(_SALT_BYTES)
    salted = hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)
    upsertion = ScramCredentialUpsertion(
        name=user,
        mechanism=mechanism,
        iterations=iterations,
        salt=salt,
        salted_password=salted,
    )
    await _alter(client, AlterUserScramCredentialsRequest(upsertions=[upsertion]))


async def delete_scram(client: Client, user: str, mechanism: ScramMechanism) -> None:
    """Takes a user's password away."""
    deletion = ScramCredentialDeletion(name=user, mechanism=mechanism)
    await _alter(client, AlterUserScramCredentialsRequest(deletions=[deletion]))


async def _alter(client: Client, request: AlterUserScramCredentialsRequest) -> None:
    async def attempt() -> None:
        response = await client.call(request, AlterUserScramCredentialsResponse, to=CONTROLLER)
        for row in response.results:
            check_answer(row.error_code, f"user {row.user!r}", row.error_message)

    await client.retrying(attempt)
