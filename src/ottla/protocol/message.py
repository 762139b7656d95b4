"""How a message is declared: the class body is the schema for all versions.

    class TopicProduceData(Message):
        name: Annotated[str, String("0-12")] = ""
        topic_id: Annotated[bytes, Uuid("13+")] = NO_UUID
        partition_data: Annotated[list[PartitionProduceData], Array("0+")] = []

A field's marker says its type on the wire, the versions that have it, the versions in which it may
be null, and its tag if it is a tagged field. The attribute's default stands for a field that a
version lacks. Fields are written in the order of the class body.

A tagged struct that may not be null on the wire is declared `T | None = None`: None means that the
tag is absent.

Does not know how bytes are read or written: `codec.py` compiles that from the declarations.
"""

from __future__ import annotations

from functools import cache
from typing import ClassVar, Final

import msgspec

from ottla.model.file_region import FileRegion

NO_UUID: Final = bytes(16)
"""A uuid field that holds nothing."""

VERSION_MAX: Final = 32767

RecordData = bytes | bytearray | memoryview | FileRegion
"""What a records field may hold when it is sent; a received one is always a memoryview."""


class Message(msgspec.Struct, gc=False):
    """A message or a struct inside one. Holds no cycles, so the collector need not look at it."""


class VersionRange(msgspec.Struct, frozen=True):
    """The versions from `first` to `last`, both included; empty if first > last."""

    first: int
    last: int

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last

    def numbers(self) -> range:
        """Each version, in order."""
        return range(self.first, self.last + 1)


@cache  # every request asks
def parse_versions(text: str) -> VersionRange:
    """Read "3+", "0-12", "4" or "none"."""
    if text == "none":
        return VersionRange(0, -1)
    if text.endswith("+"):
        return VersionRange(int(text[:-1]), VERSION_MAX)
    first, _, last = text.partition("-")
    return VersionRange(int(first), int(last or first))


class Schema(msgspec.Struct, frozen=True):
    """What is true of a whole message: its versions, and from where on they are flexible."""

    versions: str
    flexible: str = "none"
    api_key: int = -1
    record_type: int = -1
    """For a coordinator's records: the number that starts the key."""
    unstable: str = "none"
    """Versions still subject to change; a broker does not offer them."""

    def range(self) -> VersionRange:
        return parse_versions(self.versions)


class Bool(msgspec.Struct, frozen=True):
    """One byte, zero or not."""

    versions: str
    tag: int | None = None
    code: ClassVar[str] = "?"


class Int8(msgspec.Struct, frozen=True):
    """A signed byte."""

    versions: str
    tag: int | None = None
    code: ClassVar[str] = "b"


class Int16(msgspec.Struct, frozen=True):
    """Two bytes, signed, big-endian."""

    versions: str
    tag: int | None = None
    code: ClassVar[str] = "h"


class Uint16(msgspec.Struct, frozen=True):
    """Two bytes, unsigned."""

    versions: str
    tag: int | None = None
    code: ClassVar[str] = "H"


class Int32(msgspec.Struct, frozen=True):
    """Four bytes, signed."""

    versions: str
    tag: int | None = None
    code: ClassVar[str] = "i"


class Uint32(msgspec.Struct, frozen=True):
    """Four bytes, unsigned."""

    versions: str
    tag: int | None = None
    code: ClassVar[str] = "I"


class Int64(msgspec.Struct, frozen=True):
    """Eight bytes, signed."""

    versions: str
    tag: int | None = None
    code: ClassVar[str] = "q"


class Float64(msgspec.Struct, frozen=True):
    """Eight bytes, IEEE 754."""

    versions: str
    tag: int | None = None
    code: ClassVar[str] = "d"


class Uuid(msgspec.Struct, frozen=True):
    """Sixteen bytes as they are."""

    versions: str
    tag: int | None = None
    code: ClassVar[str] = "16s"


class String(msgspec.Struct, frozen=True):
    """UTF-8 with its length before it: two bytes, or a varint in flexible versions."""

    versions: str
    nullable: str = "none"
    tag: int | None = None
    compact: bool = True
    """Whether flexible versions use the varint length; one field of one header never does."""


class Bytes(msgspec.Struct, frozen=True):
    """Bytes with their length before them: four bytes, or a varint in flexible versions."""

    versions: str
    nullable: str = "none"
    tag: int | None = None


class Records(msgspec.Struct, frozen=True):
    """Record batches: as Bytes, but not copied when read, and perhaps a file's when written."""

    versions: str
    nullable: str = "none"


Fixed = Bool | Int8 | Int16 | Uint16 | Int32 | Uint32 | Int64 | Float64 | Uuid
FIXED_TYPES: Final = (Bool, Int8, Int16, Uint16, Int32, Uint32, Int64, Float64, Uuid)


class Array(msgspec.Struct, frozen=True):
    """Elements with their count before them; structs, unless `of` names a primitive marker."""

    versions: str
    of: type[Fixed] | type[String] | None = None
    nullable: str = "none"
    tag: int | None = None


class Nested(msgspec.Struct, frozen=True):
    """A struct in place; one that may be null has a marker byte before it."""

    versions: str
    nullable: str = "none"
    tag: int | None = None


Marker = Fixed | String | Bytes | Records | Array | Nested
