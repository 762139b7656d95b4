"""What is asked of the place that keeps metadata: a small tree of versioned nodes, as ZooKeeper's.

The rules every store keeps (numbered, because others lean on them):
 1. A node's version is 0 when it is created and grows by one with each SetData.
 2. Each committed multi has its own zxid, larger than all before it, across restarts too. A node's
    `czxid` is that of its creation, `mzxid` that of its last change.
 3. A multi happens wholly or not at all, and is durable when `multi` returns.
 4. A node is created under an existing parent, never under an ephemeral one, and deleted only when
    it has no children.
 5. Ephemeral nodes end with the session that made them; `owner` is that session's id.
 6. A watcher is told of a change after its commit. The event is a hint: read the tree again. Equal
    events may be told once, and one of the watched node itself stands for any number below it.
 7. A read sees every multi that had returned, to anybody, when the read was asked for.
 8. StoreUncertain says that a multi may or may not have happened. Reading tells: the answer to a
    read asked for after it does not change again because of that multi.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Final, Protocol

import msgspec

from ottla.cluster.session import Session
from ottla.errors import ErrorCode, OttlaError

ANY_VERSION: Final = -1
ROOT: Final = "/"


class Node(msgspec.Struct, frozen=True):
    """What a path holds. A Struct, because a start reads tens of thousands of them."""

    data: bytes
    version: int
    czxid: int
    mzxid: int
    owner: int = 0
    """The session of an ephemeral node; zero for one that stays."""


class Create(msgspec.Struct, frozen=True):
    """Make a node. A sequential one gets ten digits, counting up under its parent, as its end."""

    path: str
    data: bytes = b""
    is_ephemeral: bool = False
    is_sequential: bool = False


class SetData(msgspec.Struct, frozen=True):
    """Replace what a node holds, if it has the given version."""

    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(msgspec.Struct, frozen=True):
    """Remove a node, if it has the given version."""

    path: str
    version: int = ANY_VERSION


class Check(msgspec.Struct, frozen=True):
    """Let the multi happen only if a node has the given version."""

    path: str
    version: int


Operation = Create | SetData | Delete | Check


class Done(msgspec.Struct, frozen=True):
    """What one operation of a multi came to: the path (with its digits) and the node's version.

    The version of what was deleted is ANY_VERSION where that was asked for. `czxid` is known for
    nodes that were made or changed.
    """

    path: str
    version: int
    czxid: int = 0


class ChangeKind(Enum):
    """What happened to a node."""

    CREATED = auto()
    CHANGED = auto()
    DELETED = auto()


class NodeChanged(msgspec.Struct, frozen=True):
    """Told to watchers after a commit."""

    path: str
    kind: ChangeKind


Watcher = Callable[[NodeChanged], None]


class Watch(Protocol):
    """A watcher's place in the store; it is called until it is cancelled."""

    def cancel(self) -> None: ...


class MetadataStore(Protocol):
    """A versioned tree. Every method that waits raises a StoreError when the store fails it."""

    @property
    def session(self) -> Session:
        """This process's session; the owner of the ephemeral nodes it makes."""
        ...

    @property
    def multi_bytes_max(self) -> int:
        """How large a multi may be, counted by `size_bytes`."""
        ...

    def size_bytes(self, operation: Operation) -> int:
        """What an operation takes of a multi."""
        ...

    async def get(self, path: str) -> Node | None:
        """What a path holds, or None."""
        ...

    async def get_many(self, paths: Sequence[str]) -> dict[str, Node]:
        """What some paths hold; those that hold nothing are left out. Not all of one moment."""
        ...

    async def children(self, path: str) -> list[str]:
        """The names (not paths) of a node's children, sorted; NoNode where there is no node."""
        ...

    async def read_all(self, prefix: str) -> dict[str, Node]:
        """A node and all below it, by path in order; empty where there is none."""
        ...

    async def multi(self, operations: Sequence[Operation]) -> list[Done]:
        """Do all of it or, raising the first StoreConflict, nothing."""
        ...

    def watch(self, prefix: str, watcher: Watcher) -> Watch:
        """Call `watcher` on the event loop after every change to a node and those below it."""
        ...

    async def close(self) -> None:
        """End the session, and the ephemeral nodes with it."""
        ...


class StoreError(OttlaError):
    """The metadata store could not do what was asked."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR


class StoreFailed(StoreError):
    """The store itself does not work: the disk is full, the file damaged, the session gone."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class StoreUnreachable(StoreFailed):
    """The store does not answer now; nothing was done. It may answer later."""

    code = ErrorCode.REQUEST_TIMED_OUT


class StoreUncertain(StoreError):
    """The connection broke before the answer to a multi: it happened wholly, or not at all."""

    code = ErrorCode.REQUEST_TIMED_OUT


class MultiTooLarge(StoreError):
    """More was asked for at once than the store takes; nothing was done."""

    code = ErrorCode.POLICY_VIOLATION

    def __init__(self, size_bytes: int, bytes_max: int) -> None:
        self.size_bytes = size_bytes
        self.bytes_max = bytes_max
        super().__init__(
            f"a change of {size_bytes} bytes of metadata was asked for at once and {bytes_max} are"
            " the most; ask for fewer topics or partitions at a time"
        )


class MetadataLost(StoreFailed):
    """The store works, and yet lacks what it must have: it was emptied, or is another cluster's."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the metadata store is not the one of this broker's data: {reason}")


class MetadataDamaged(StoreFailed):
    """The file of a single node's metadata is not as it was written."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        directory = name.rpartition("/")[0] or "."
        super().__init__(
            f"{name} is damaged ({reason}); restore it with the files beside it from a copy, or"
            f" rebuild the topics from the logs: ottla log adopt {directory}"
        )


class StoreConflict(StoreError):
    """The tree is not as the operation expected; nothing was changed."""

    def __init__(self, path: str, message: str) -> None:
        self.path = path
        super().__init__(message)


class NodeExists(StoreConflict):
    """Something was created before."""

    def __init__(self, path: str) -> None:
        super().__init__(path, f"{path} exists already")


class NoNode(StoreConflict):
    """The node, or the parent of one to be created, is not there."""

    def __init__(self, path: str) -> None:
        super().__init__(path, f"there is no {path}")


class BadVersion(StoreConflict):
    """Somebody else changed the node."""

    def __init__(self, path: str, expected: int, found: int | None = None) -> None:
        self.expected = expected
        self.found = found
        """None where the store does not tell."""
        has = "another version" if found is None else f"version {found}"
        super().__init__(path, f"{path} has {has}, not {expected}")


class NotEmpty(StoreConflict):
    """A node with children cannot be deleted."""

    def __init__(self, path: str) -> None:
        super().__init__(path, f"{path} has children")


class NoChildrenAllowed(StoreConflict):
    """An ephemeral node cannot have children."""

    def __init__(self, path: str) -> None:
        super().__init__(path, f"{path} is ephemeral and cannot have children")


def parent_of(path: str) -> str:
    """The path above; the root's is empty."""
    if path == ROOT:
        return ""
    return path.rpartition("/")[0] or ROOT


def name_of(path: str) -> str:
    """The last part of a path."""
    return path.rpartition("/")[2]


def child_of(parent: str, name: str) -> str:
    """The path of a child."""
    return f"{parent}/{name}" if parent != ROOT else f"/{name}"


def check_path(path: str) -> None:
    """Paths are written by our own code, so that a bad one is a mistake there."""
    assert path == ROOT or (path.startswith("/") and all(path[1:].split("/"))), path
