"""Requests made from the declared messages by chance: of every API in every version it has."""

from __future__ import annotations

import types
from random import Random
from struct import pack
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from ottla.errors import OttlaError
from ottla.protocol.api import APIS, Api, ApiKey
from ottla.protocol.codec import encode
from ottla.protocol.message import Message, Uuid

OBEYED = {  # what they say would be done: the broker leaves, or everybody is slowed down
    ApiKey.UNREGISTER_BROKER,
    ApiKey.ALTER_CLIENT_QUOTAS,
    ApiKey.UPDATE_FEATURES,
    ApiKey.CONTROLLED_SHUTDOWN,
}
NAMES = ("fuzz-plain", "fuzz-compact", "fuzz-gzip", "unknown", "", "é", "a" * 300, "__x", "a/b")
NUMBERS = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 100, 32767, 2**31 - 1, 2**63 - 1)
BITS = {"Int8": 8, "Int16": 16, "Int32": 32, "Int64": 64}
ELEMENTS_MAX = 3
DEPTH_MAX = 6

Version = tuple[Api, int]


def all_versions() -> list[Version]:
    """What is tried: every version of every API whose requests may be obeyed."""
    return [
        (api, version)
        for key, api in APIS.items()
        if key not in OBEYED
        for version in api.versions.numbers()
    ]


def request(api: Api, version: int, body: bytes, number: int = 9) -> bytes:
    """A whole frame."""
    header = pack(">hhih", api.key, version, number, 4) + b"fuzz"
    if version >= api.flexible_from and api.key is not ApiKey.CONTROLLED_SHUTDOWN:
        header += b"\0"
    return pack(">i", len(header) + len(body)) + header + body


def random_body(api: Api, version: int, random: Random) -> bytes:
    """A request with values by chance in all its fields, well encoded; nothing, if those values
    cannot be encoded."""
    try:
        return encode(_message(api.request, random, 0), version)
    except (OttlaError, ValueError, TypeError, OverflowError, KeyError, AttributeError):
        return b""
    except Exception as error:  # struct.error, which a field of fewer bits gives
        if type(error).__name__ == "error":
            return b""
        raise


def damaged(body: bytes, random: Random) -> bytes:
    """The body with some bytes changed, cut out, doubled, or made a huge count."""
    data = bytearray(body or b"\0")
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(data)) if data else 0
        how = random.randrange(5)
        if how == 0 and data:
            data[at] = random.randrange(256)
        elif how == 1:
            data[at : at + 4] = random.choice((b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07"))
        elif how == 2:
            del data[at : at + random.randint(1, 4)]
        elif how == 3:
            data[at:at] = data[at : at + random.randint(1, 16)]
        else:
            del data[at:]
    return bytes(data)


def _message(message_class: type[Message], random: Random, depth: int) -> Message:
    hints = get_type_hints(message_class, include_extras=True)
    names = [field.name for field in msgspec.structs.fields(message_class)]
    return message_class(**{name: _value(hints[name], random, depth) for name in names})


def _value(hint: Any, random: Random, depth: int) -> object:
    kind, marker = hint, None
    if get_origin(hint) is Annotated:
        kind, marker = get_args(hint)[:2]
    if get_origin(kind) in (Union, types.UnionType):
        if random.random() < 0.2:
            return None
        kind = next(one for one in get_args(kind) if one is not type(None))
    if get_origin(kind) is list:
        count = 0 if depth >= DEPTH_MAX else random.randint(0, ELEMENTS_MAX)
        return [_value(get_args(kind)[0], random, depth + 1) for _ in range(count)]
    if isinstance(kind, type) and issubclass(kind, Message):
        return _message(kind, random, depth + 1)
    if isinstance(marker, Uuid):
        return random.choice((bytes(16), random.randbytes(16)))
    return _plain(kind, marker, random)


def _plain(kind: object, marker: object, random: Random) -> object:
    if kind is str:
        return random.choice(NAMES)
    if kind is bool:
        return random.random() < 0.5
    if kind is float:
        return random.choice((0.0, -1.0, float("nan"), float("inf"), random.random()))
    if kind is int:
        top = 1 << (BITS.get(type(marker).__name__, 8) - 1)
        return max(-top, min(top - 1, random.choice(NUMBERS)))
    return random.randbytes(random.randint(0, 80))
