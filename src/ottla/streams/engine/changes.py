"""A change of a table's row, and how it travels through a topic to its group."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ottla.streams.serdes import Decode, Encode, Serde

_LENGTHS: Final = struct.Struct(">ii")


class Change(NamedTuple):
    """A row's new value and, where somebody asked for it, its old one; None: no row."""

    new: Any
    old: Any = None


@dataclass(frozen=True, slots=True)
class ChangeSerde:
    """Changes as two lengths (-1: nothing) and two values."""

    inner: Serde

    @property
    def name(self) -> str:
        return f"change of {self.inner.name}"

    def serializer(self) -> Encode:
        encode = self.inner.serializer()

        def serialize(change: Change) -> bytes:
            new = None if change.new is None else encode(change.new)
            old = None if change.old is None else encode(change.old)
            lengths = _LENGTHS.pack(
                -1 if new is None else len(new), -1 if old is None else len(old)
            )
            return lengths + (new or b"") + (old or b"")

        return serialize

    def deserializer(self) -> Decode:
        decode = self.inner.deserializer()

        def deserialize(data: bytes) -> Change:
            new_length, old_length = _LENGTHS.unpack_from(data)
            middle = 8 + max(0, new_length)
            new = None if new_length < 0 else decode(data[8:middle])
            return Change(new, None if old_length < 0 else decode(data[middle:]))

        return deserialize

    def partitioner(self) -> Encode:
        return self.serializer()
