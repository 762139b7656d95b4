"""Example requests of every API, filled in all fields, for tests that then damage them."""

import types
from functools import cache
from random import Random
from typing import Annotated, Union, get_args, get_origin, get_type_hints

import msgspec

from ottla.protocol.api import Api
from ottla.protocol.codec import encode
from ottla.protocol.message import Message, Uuid
from support.batches import batch

TEXT = "example"


@cache
def _records() -> bytes:
    return batch([b"example"], timestamp_ms=1_700_000_000_000)


def example(message_class: type[Message]) -> Message:
    """A message with a value in every field and one element in every array."""
    hints = get_type_hints(message_class, include_extras=True)
    names = [field.name for field in msgspec.structs.fields(message_class)]
    return message_class(**{name: _example_value(hints[name]) for name in names})


def _example_value(hint: object) -> object:
    kind, marker = hint, None
    if get_origin(hint) is Annotated:
        kind, marker = get_args(hint)[:2]
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(one for one in get_args(kind) if one is not type(None))
    if get_origin(kind) is list:
        return [_example_value(get_args(kind)[0])]
    if isinstance(kind, type) and issubclass(kind, Message):
        return example(kind)
    if isinstance(marker, Uuid):
        return bytes(range(16))
    plain: dict[object, object] = {str: TEXT, int: 1, bool: True, float: 1.0, bytes: b"example"}
    return plain.get(kind) if kind in plain else _records()


def example_body(api: Api, version: int) -> bytes:
    """The encoded example of a request."""
    return encode(example(api.request), version)


def damaged(body: bytes, random: Random) -> bytes:
    """The body with one to three bytes changed, or a part cut out, doubled or made of ones."""
    data = bytearray(body or b"\0")
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(data))
        how = random.randrange(4)
        if how == 0:
            data[at] = random.randrange(256)
        elif how == 1:
            data[at : at + 4] = random.choice([b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"])
        elif how == 2 and len(data) > 2:
            del data[at]
        else:
            data[at:at] = data[at : at + random.randint(1, 8)]
    return bytes(data)
