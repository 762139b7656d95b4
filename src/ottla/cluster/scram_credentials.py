"""SCRAM credentials of users: keys derived from a password that is never stored itself.

Pure: a wish is checked and written into a draft; questions are answered from an image. They lie
with the user's other settings, in Kafka's own form.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final

import msgspec

from ottla.cluster.entity_configs import replace_entity_config
from ottla.cluster.image import ClusterImage, Draft
from ottla.cluster.layout import entity_name, name_of_entity
from ottla.errors import ErrorCode, RequestFailed

ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384
_USERS: Final = "users/"


class Mechanism(IntEnum):
    """A SCRAM mechanism, by its code on the wire."""

    SHA_256 = 1
    SHA_512 = 2

    @property
    def setting(self) -> str:
        """The name under which its credential is kept."""
        return f"SCRAM-{self.name.replace('_', '-')}"

    @property
    def hash_name(self) -> str:
        return self.name.replace("_", "").lower()


class Upsertion(msgspec.Struct, frozen=True):
    """A credential to keep: what the client made of the password."""

    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


class Deletion(msgspec.Struct, frozen=True):
    """A credential to forget."""

    mechanism: int


class CredentialInfo(msgspec.Struct, frozen=True):
    """What may be told of a credential."""

    mechanism: Mechanism
    iterations: int


def alter_credentials(draft: Draft, user: str, wishes: Sequence[Upsertion | Deletion]) -> None:
    """Change some of a user's credentials; RequestFailed, with nothing done, if one wish fails."""
    if not user:
        raise RequestFailed(ErrorCode.UNACCEPTABLE_CREDENTIAL, "a user's name cannot be empty")
    wanted = dict(draft.entity_config(_place(user)).configs)
    seen: set[Mechanism] = set()
    for wish in wishes:
        mechanism = _mechanism(wish.mechanism)
        if mechanism in seen:
            raise RequestFailed(
                ErrorCode.DUPLICATE_RESOURCE,
                f"the credential {mechanism.setting} of {user!r} is changed twice in one request",
            )
        seen.add(mechanism)
        if isinstance(wish, Upsertion):
            wanted[mechanism.setting] = _credential(mechanism, wish)
        elif wanted.pop(mechanism.setting, None) is None:
            raise RequestFailed(
                ErrorCode.RESOURCE_NOT_FOUND, f"{user!r} has no credential {mechanism.setting}"
            )
    replace_entity_config(draft, _place(user), wanted)


def credentials(image: ClusterImage) -> Mapping[str, Sequence[CredentialInfo]]:
    """What every user has, by the user's name."""
    found: dict[str, Sequence[CredentialInfo]] = {}
    for place, config in image.entity_configs.items():
        if not place.startswith(_USERS) or place.count("/") != 1:
            continue
        user = name_of_entity(place.removeprefix(_USERS))
        infos = [
            CredentialInfo(mechanism, _iterations(config.configs[mechanism.setting]))
            for mechanism in Mechanism
            if mechanism.setting in config.configs
        ]
        if user is not None and infos:
            found[user] = infos
    return found


def _mechanism(number: int) -> Mechanism:
    try:
        return Mechanism(number)
    except ValueError:
        raise RequestFailed(
            ErrorCode.UNSUPPORTED_SASL_MECHANISM,
            f"{number} is no SCRAM mechanism: 1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512",
        ) from None


def _credential(mechanism: Mechanism, wish: Upsertion) -> str:
    if not ITERATIONS_MIN <= wish.iterations <= ITERATIONS_MAX:
        raise RequestFailed(
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            f"{wish.iterations} iterations: use {ITERATIONS_MIN} to {ITERATIONS_MAX}",
        )
    if not wish.salt or not wish.salted_password:
        raise RequestFailed(ErrorCode.UNACCEPTABLE_CREDENTIAL, "salt and password are needed")
    name = mechanism.hash_name
    client_key = hmac.digest(wish.salted_password, b"Client Key", name)
    server_key = hmac.digest(wish.salted_password, b"Server Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    return (
        f"salt={_base64(wish.salt)},stored_key={_base64(stored_key)},"
        f"server_key={_base64(server_key)},iterations={wish.iterations}"
    )


def _iterations(credential: str) -> int:
    return int(credential.rpartition("iterations=")[2])


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _place(user: str) -> str:
    return _USERS + entity_name(user)
