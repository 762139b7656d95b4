"""Objects to bytes and back. A serializer is any function of one argument: bytes or None out.

`None` stays None on both ways without asking the serializer: it is a record's "nothing".
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

import msgspec

from ottla.clients.failures import SerializationFailed
from ottla.errors import ConfigError

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
T_co = TypeVar("T_co", covariant=True)

BytesLike = bytes | bytearray | memoryview

_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_DOUBLE: Final = struct.Struct(">d")


class Serializer(Protocol[T_contra]):
    """Turns an object into bytes."""

    def __call__(self, value: T_contra, /) -> bytes: ...


class Deserializer(Protocol[T_co]):
    """Turns bytes into an object."""

    def __call__(self, data: bytes, /) -> T_co: ...


def as_bytes(value: object) -> bytes:
    """Bytes as they are; what is like bytes is copied, since it could change on its way."""
    if type(value) is bytes:
        return value
    if isinstance(value, BytesLike):
        return bytes(value)
    kind = type(value).__name__
    raise SerializationFailed(
        f"{kind} without a serializer",
        TypeError("give bytes, or a serializer such as serializers.text or serializers.json"),
    )


def text(value: str) -> bytes:
    """A str as UTF-8."""
    return value.encode()


def text_from(data: bytes) -> str:
    """A str from UTF-8."""
    return data.decode()


def int32(value: int) -> bytes:
    """An int as Java's Integer: four bytes, big-endian."""
    return _INT.pack(value)


def int32_from(data: bytes) -> int:
    """An int from four bytes."""
    return int(_INT.unpack(data)[0])


def int64(value: int) -> bytes:
    """An int as Java's Long: eight bytes, big-endian."""
    return _LONG.pack(value)


def int64_from(data: bytes) -> int:
    """An int from eight bytes."""
    return int(_LONG.unpack(data)[0])


def float64(value: float) -> bytes:
    """A float as Java's Double: eight bytes, big-endian."""
    return _DOUBLE.pack(value)


def float64_from(data: bytes) -> float:
    """A float from eight bytes."""
    return float(_DOUBLE.unpack(data)[0])


def json(value: object) -> bytes:
    """Anything msgspec knows as JSON: dicts, lists, dataclasses, msgspec structs, datetimes."""
    return msgspec.json.encode(value)


def json_from(data: bytes) -> Any:
    """Plain objects from JSON."""
    return msgspec.json.decode(data)


def json_of(kind: type[T]) -> Callable[[bytes], T]:
    """A deserializer from JSON to a dataclass, a msgspec struct or any annotated type."""
    decoder = msgspec.json.Decoder(kind)
    return decoder.decode


def msgpack(value: object) -> bytes:
    """Anything msgspec knows as MessagePack."""
    return msgspec.msgpack.encode(value)


def msgpack_of(kind: type[T]) -> Callable[[bytes], T]:
    """A deserializer from MessagePack to a dataclass, a msgspec struct or any annotated type."""
    decoder = msgspec.msgpack.Decoder(kind)
    return decoder.decode


_BY_NAME: Final[dict[str, tuple[Callable[..., bytes], Callable[[bytes], Any]]]] = {
    "str": (text, text_from),
    "int": (int64, int64_from),
    "float": (float64, float64_from),
    "json": (json, json_from),
    "msgpack": (msgpack, msgspec.msgpack.decode),
}
_BY_TYPE: Final = {str: "str", int: "int", float: "float"}

Choice = str | type | Callable[..., Any] | None
"""A function, one of the names str, bytes, int, float, json, msgpack, or a type."""


def serializer_for(choice: Choice) -> Callable[[Any], bytes] | None:
    """The function behind what a person gave; None where bytes go as they are."""
    if choice is None or choice is bytes or choice == "bytes":
        return None
    if isinstance(choice, str):
        return _named(choice)[0]
    if isinstance(choice, type):
        return _named(_BY_TYPE[choice])[0] if choice in _BY_TYPE else json
    return choice


def deserializer_for(choice: Choice) -> Callable[[bytes], Any] | None:
    """The function behind what a person gave; None where bytes stay bytes."""
    if choice is None or choice is bytes or choice == "bytes":
        return None
    if isinstance(choice, str):
        return _named(choice)[1]
    if isinstance(choice, type):
        if choice in _BY_TYPE:
            return _named(_BY_TYPE[choice])[1]
        if dataclasses.is_dataclass(choice) or issubclass(choice, msgspec.Struct):
            return json_of(choice)
        raise ConfigError("deserializer", f"{choice!r} is not one", "give a function of bytes")
    return choice


def _named(name: str) -> tuple[Callable[..., bytes], Callable[[bytes], Any]]:
    try:
        return _BY_NAME[name]
    except KeyError:
        names = ", ".join(("bytes", *_BY_NAME))
        raise ConfigError("serializer", f"there is none named {name!r}", f"use {names}") from None
