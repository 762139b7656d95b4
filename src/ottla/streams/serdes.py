"""How keys and values become bytes in topics and stores, and objects again.

A serde is plain data that can be sent to another process; its two functions are made where they
are used. `None` never reaches them: it is a record's "nothing" on both sides.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from ottla.clients.serializers import deserializer_for, serializer_for
from ottla.streams.failures import TopologyError
from ottla.streams.windowed import Windowed

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]

_TIME: Final = struct.Struct(">q")
_TIMES: Final = struct.Struct(">qq")
_NAMES: Final = ("str", "bytes", "int", "float", "json", "msgpack")


class Serde(Protocol):
    """Makes the two functions between objects and bytes."""

    @property
    def name(self) -> str: ...
    def serializer(self) -> Encode: ...
    def deserializer(self) -> Decode: ...
    def partitioner(self) -> Encode:
        """What of a key decides its partition; the serialised key, save for windowed ones."""


def _same(data: bytes) -> bytes:
    return data


@dataclass(frozen=True, slots=True)
class NamedSerde:
    """One of str, bytes, int, float, json and msgpack."""

    name: str

    def serializer(self) -> Encode:
        return serializer_for(self.name) or _same

    def deserializer(self) -> Decode:
        return deserializer_for(self.name) or _same

    def partitioner(self) -> Encode:
        return self.serializer()


@dataclass(frozen=True, slots=True)
class StructSerde:
    """JSON of a dataclass or a msgspec struct."""

    kind: type

    @property
    def name(self) -> str:
        return self.kind.__name__

    def serializer(self) -> Encode:
        return msgspec.json.Encoder().encode

    def deserializer(self) -> Decode:
        return msgspec.json.Decoder(self.kind).decode

    def partitioner(self) -> Encode:
        return self.serializer()


@dataclass(frozen=True, slots=True)
class FunctionSerde:
    """Two functions of the user's own."""

    serialize: Encode
    deserialize: Decode
    name: str = "function"

    def serializer(self) -> Encode:
        return self.serialize

    def deserializer(self) -> Decode:
        return self.deserialize

    def partitioner(self) -> Encode:
        return self.serialize


@dataclass(frozen=True, slots=True)
class TimeWindowedSerde:
    """Keys of windows of one size, as Kafka Streams writes them: the key, then the start."""

    inner: Serde
    size_ms: int

    @property
    def name(self) -> str:
        return f"windowed {self.inner.name}"

    def serializer(self) -> Encode:
        encode, pack = self.inner.serializer(), _TIME.pack
        return lambda windowed: encode(windowed[0]) + pack(windowed[1])

    def deserializer(self) -> Decode:
        decode, size_ms = self.inner.deserializer(), self.size_ms

        def windowed(data: bytes) -> Windowed:
            (start_ms,) = _TIME.unpack(data[-8:])
            return Windowed(decode(data[:-8]), start_ms, start_ms + size_ms)

        return windowed

    def partitioner(self) -> Encode:
        encode = self.inner.serializer()
        return lambda windowed: encode(windowed[0])


@dataclass(frozen=True, slots=True)
class SessionWindowedSerde:
    """Keys of sessions, as Kafka Streams writes them: the key, then the end, then the start."""

    inner: Serde

    @property
    def name(self) -> str:
        return f"session-windowed {self.inner.name}"

    def serializer(self) -> Encode:
        encode, pack = self.inner.serializer(), _TIMES.pack
        return lambda windowed: encode(windowed[0]) + pack(windowed[2], windowed[1])

    def deserializer(self) -> Decode:
        decode = self.inner.deserializer()

        def windowed(data: bytes) -> Windowed:
            end_ms, start_ms = _TIMES.unpack(data[-16:])
            return Windowed(decode(data[:-16]), start_ms, end_ms)

        return windowed

    def partitioner(self) -> Encode:
        encode = self.inner.serializer()
        return lambda windowed: encode(windowed[0])


SerdeChoice = str | type | Serde
"""A name, `str`, `bytes`, `int`, `float`, a dataclass, a msgspec struct, or a serde."""


def serde_for(choice: SerdeChoice) -> Serde:
    """The serde behind what a person gave."""
    if isinstance(choice, str):
        if choice in _NAMES:
            return NamedSerde(choice)
        raise TopologyError(f"there is no serde named {choice!r}; use {', '.join(_NAMES)}")
    if isinstance(choice, type):
        if choice in (str, bytes, int, float):
            return NamedSerde(choice.__name__)
        if choice in (dict, list):
            return NamedSerde("json")
        if dataclasses.is_dataclass(choice) or issubclass(choice, msgspec.Struct):
            return StructSerde(choice)
        raise TopologyError(
            f"{choice.__name__} is no dataclass and no msgspec struct; give a serde"
        )
    if hasattr(choice, "serializer") and hasattr(choice, "deserializer"):
        return choice
    raise TopologyError(f"{choice!r} is no serde; give a name, a type or a serde object")
