"""The requests our store sends to ZooKeeper, as bytes: many of one kind in one packet.

kazoo carries them (a request has `type`, `serialize` and `deserialize`). It has no reading multi,
no lasting watches and no stat for nodes made in a multi, so that these are written here. Paths are
whole: a chroot has been put before them. Does not know connections, sessions or our errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from struct import Struct
from typing import ClassVar, Final

import msgspec

from ottla.cluster.store import Check, Create, Delete, Operation, SetData

OK: Final = 0
NO_NODE: Final = -101
NO_AUTH: Final = -102
BAD_VERSION: Final = -103
NO_CHILDREN_FOR_EPHEMERALS: Final = -108
NODE_EXISTS: Final = -110
NOT_EMPTY: Final = -111
ROLLED_BACK: Final = -2
"""What ZooKeeper says of the operations of a multi after the one that failed."""

_INT: Final = Struct("!i")
_MULTI_HEADER: Final = Struct("!i?i")
_STAT: Final = Struct("!qqqqiiiqiiq")
_END: Final = _MULTI_HEADER.pack(-1, True, -1)
_ALL_PERMISSIONS: Final = 31
_EPHEMERAL: Final = 1
_SEQUENTIAL: Final = 2


class OperationType(IntEnum):
    """ZooKeeper's numbers for what may be asked."""

    DELETE = 2
    GET_DATA = 4
    SET_DATA = 5
    GET_CHILDREN = 8
    SYNC = 9
    CHECK = 13
    MULTI = 14
    CREATE_WITH_STAT = 15
    MULTI_READ = 22
    ADD_WATCH = 106
    FAILED = -1


class EventType(IntEnum):
    """ZooKeeper's numbers for what a lasting, recursive watch tells."""

    CREATED = 1
    DELETED = 2
    CHANGED = 3


class Stat(msgspec.Struct, frozen=True):
    """What ZooKeeper keeps beside a node's bytes, as far as it is used."""

    czxid: int
    mzxid: int
    version: int
    owner: int
    child_count: int


class Failed(msgspec.Struct, frozen=True):
    """One operation of a multi did not happen."""

    code: int


class Created(msgspec.Struct, frozen=True):
    """A node was made."""

    path: str
    stat: Stat


class Found(msgspec.Struct, frozen=True):
    """What a node holds."""

    data: bytes
    stat: Stat


def string(text: str) -> bytes:
    encoded = text.encode()
    return _INT.pack(len(encoded)) + encoded


def acl(scheme: str, identity: str) -> bytes:
    """An access list of one entry that may do everything."""
    return _INT.pack(1) + _INT.pack(_ALL_PERMISSIONS) + string(scheme) + string(identity)


OPEN: Final = acl("world", "anyone")
CREATOR_ONLY: Final = acl("auth", "")


def encode_operation(operation: Operation, path: str, access: bytes) -> bytes:
    """One operation of a multi, on the whole path."""
    match operation:
        case Create(data=data):
            flags = _EPHEMERAL * operation.is_ephemeral | _SEQUENTIAL * operation.is_sequential
            kind = OperationType.CREATE_WITH_STAT
            body = _buffer(data) + access + _INT.pack(flags)
        case SetData(data=data, version=version):
            kind = OperationType.SET_DATA
            body = _buffer(data) + _INT.pack(version)
        case Delete(version=version):
            kind = OperationType.DELETE
            body = _INT.pack(version)
        case Check(version=version):
            kind = OperationType.CHECK
            body = _INT.pack(version)
    return _MULTI_HEADER.pack(kind, False, -1) + string(path) + body


class Multi:
    """Operations that happen together. The answer is a list with an entry for each."""

    type: ClassVar[int] = int(OperationType.MULTI)

    def __init__(self, encoded: Sequence[bytes]) -> None:
        self._bytes = b"".join((*encoded, _END))

    @property
    def size_bytes(self) -> int:
        return len(self._bytes)

    def serialize(self) -> bytes:
        return self._bytes

    @staticmethod
    def deserialize(buffer: bytes, position: int) -> list[Created | Stat | Failed | None]:
        results: list[Created | Stat | Failed | None] = []
        while True:
            kind, is_end, _ = _MULTI_HEADER.unpack_from(buffer, position)
            position += _MULTI_HEADER.size
            if is_end:
                return results
            match kind:
                case OperationType.CREATE_WITH_STAT:
                    path, position = _read_string(buffer, position)
                    results.append(Created(path, _read_stat(buffer, position)))
                    position += _STAT.size
                case OperationType.SET_DATA:
                    results.append(_read_stat(buffer, position))
                    position += _STAT.size
                case OperationType.FAILED:
                    results.append(Failed(_INT.unpack_from(buffer, position)[0]))
                    position += _INT.size
                case _:
                    results.append(None)


class _Reads:
    """Many reads in one packet; a missing node fails only its own entry."""

    type: ClassVar[int] = int(OperationType.MULTI_READ)

    def __init__(self, kind: OperationType, paths: Sequence[str]) -> None:
        header = _MULTI_HEADER.pack(kind, False, -1)
        self._bytes = b"".join((*(header + string(path) + b"\0" for path in paths), _END))

    def serialize(self) -> bytes:
        return self._bytes

    @staticmethod
    def deserialize(buffer: bytes, position: int) -> list[Found | list[str] | Failed]:
        results: list[Found | list[str] | Failed] = []
        while True:
            kind, is_end, _ = _MULTI_HEADER.unpack_from(buffer, position)
            position += _MULTI_HEADER.size
            if is_end:
                return results
            if kind == OperationType.GET_DATA:
                data, position = _read_buffer(buffer, position)
                results.append(Found(data, _read_stat(buffer, position)))
                position += _STAT.size
            elif kind == OperationType.GET_CHILDREN:
                names, position = _read_strings(buffer, position)
                results.append(names)
            else:
                results.append(Failed(_INT.unpack_from(buffer, position)[0]))
                position += _INT.size


def read_nodes(paths: Sequence[str]) -> _Reads:
    """The answer has a Found, or a Failed, for each path."""
    return _Reads(OperationType.GET_DATA, paths)


def read_children(paths: Sequence[str]) -> _Reads:
    """The answer has a list of names, or a Failed, for each path."""
    return _Reads(OperationType.GET_CHILDREN, paths)


class Sync:
    """Lets this server catch up with the leader before it answers what was asked later."""

    type: ClassVar[int] = int(OperationType.SYNC)

    def __init__(self, path: str) -> None:
        self._path = path

    def serialize(self) -> bytes:
        return string(self._path)

    @staticmethod
    def deserialize(_buffer: bytes, _position: int) -> None:
        return None


class AddWatch:
    """Asks to be told of every change to a node and those below it, until the connection ends."""

    type: ClassVar[int] = int(OperationType.ADD_WATCH)
    LASTING_AND_RECURSIVE: ClassVar[int] = 1

    def __init__(self, path: str) -> None:
        self._path = path

    def serialize(self) -> bytes:
        return string(self._path) + _INT.pack(self.LASTING_AND_RECURSIVE)

    @staticmethod
    def deserialize(_buffer: bytes, _position: int) -> None:
        return None


def read_event(buffer: bytes, position: int) -> tuple[int, str]:
    """The kind and the path of what a watch tells."""
    kind = _INT.unpack_from(buffer, position)[0]
    path, _ = _read_string(buffer, position + 2 * _INT.size)
    return kind, path


def _buffer(data: bytes) -> bytes:
    return _INT.pack(len(data)) + data


def _read_buffer(buffer: bytes, position: int) -> tuple[bytes, int]:
    size = _INT.unpack_from(buffer, position)[0]
    position += _INT.size
    end = position + max(size, 0)
    return buffer[position:end], end


def _read_string(buffer: bytes, position: int) -> tuple[str, int]:
    data, position = _read_buffer(buffer, position)
    return data.decode(), position


def _read_strings(buffer: bytes, position: int) -> tuple[list[str], int]:
    count = _INT.unpack_from(buffer, position)[0]
    position += _INT.size
    found: list[str] = []
    for _ in range(count):
        text, position = _read_string(buffer, position)
        found.append(text)
    return found, position


def _read_stat(buffer: bytes, position: int) -> Stat:
    fields = _STAT.unpack_from(buffer, position)
    return Stat(fields[0], fields[1], fields[4], fields[7], fields[9])
