"""Our branch of a ZooKeeper tree: its paths, and ZooKeeper's answers in the words of store.py.

Our paths begin at the branch's root (the chroot); whole paths are those that ZooKeeper knows. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.cluster import zookeeper_wire as wire
from ottla.cluster.store import (
    ROOT,
    BadVersion,
    Check,
    Create,
    Delete,
    Done,
    NoChildrenAllowed,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    StoreConflict,
    StoreError,
    StoreFailed,
    child_of,
    parent_of,
)

SYSTEM: Final = "/zookeeper"
"""ZooKeeper's own nodes; they are not part of our tree where we have no chroot."""


class Branch:
    """The branch below a chroot (empty for the whole tree), and who may touch new nodes there."""

    def __init__(self, chroot: str, access: bytes) -> None:
        self._chroot = chroot
        self._access = access

    @property
    def root(self) -> str:
        """The whole path of the branch."""
        return self._chroot or ROOT

    def path_to_root(self) -> list[str]:
        """The whole paths that must exist for the branch to exist, parents first."""
        parts = self._chroot.split("/")[1:]
        return ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]

    def whole(self, path: str) -> str:
        """Our path as ZooKeeper has it."""
        if not self._chroot:
            return path
        return self._chroot + path if path != ROOT else self._chroot

    def own(self, whole: str) -> str | None:
        """A whole path as we have it; None where it is not in our tree."""
        path = whole.removeprefix(self._chroot)
        if not self._chroot and (path == SYSTEM or path.startswith(f"{SYSTEM}/")):
            return None
        return path or ROOT

    def own_children(self, parent: str, names: Sequence[str]) -> list[str]:
        """The names among a node's children that are part of our tree."""
        if self._chroot or parent != ROOT:
            return list(names)
        return [name for name in names if child_of(parent, name) != SYSTEM]

    def making(self, whole: str) -> wire.Multi:
        """What makes one of the nodes on the path to our root."""
        return wire.Multi([wire.encode_operation(Create(whole), whole, self._access)])

    def multi(self, operations: Sequence[Operation]) -> wire.Multi:
        for operation in operations:
            # ZooKeeper would say otherwise of its own root, and do it to ours.
            if operation.path == ROOT and isinstance(operation, Create):
                raise NodeExists(ROOT)
            if operation.path == ROOT and isinstance(operation, Delete):
                raise NotEmpty(ROOT)
        return wire.Multi(
            [
                wire.encode_operation(operation, self.whole(operation.path), self._access)
                for operation in operations
            ]
        )

    def done(self, operation: Operation, result: wire.Created | wire.Stat | None) -> Done:
        if isinstance(result, wire.Created):
            path = self.own(result.path)
            assert path is not None, result.path
            return Done(path, 0, result.stat.czxid)
        if isinstance(result, wire.Stat):
            return Done(operation.path, result.version, result.czxid)
        assert isinstance(operation, Delete | Check), operation
        return Done(operation.path, operation.version)

    def failure(self, operation: Operation, code: int) -> StoreError:
        """What ZooKeeper's error for one operation means."""
        path = operation.path
        above = parent_of(path) if isinstance(operation, Create) else path
        if code == wire.BAD_VERSION and not isinstance(operation, Create):
            return BadVersion(path, operation.version)
        if code == wire.NO_AUTH:
            return StoreFailed(
                f"ZooKeeper does not allow this user to touch {self.whole(path)};"
                " check the credentials"
            )
        conflicts: dict[int, StoreConflict] = {
            wire.NO_NODE: NoNode(above),
            wire.NODE_EXISTS: NodeExists(path),
            wire.NOT_EMPTY: NotEmpty(path),
            wire.NO_CHILDREN_FOR_EPHEMERALS: NoChildrenAllowed(above),
        }
        return conflicts.get(code) or StoreFailed(f"ZooKeeper answered error {code} at {path}")
