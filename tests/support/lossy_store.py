"""A store whose connection breaks when told to, before or after a multi is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.session import Session
from ottla.cluster.store import Create, Done, Node, Operation, StoreUncertain


class LossyStore:
    """One session of several on the same tree. `losses` are taken one a multi.

    True loses the answer of a multi that was done, False a multi on its way; None loses nothing.
    """

    def __init__(self, tree: EmbeddedStore, session_id: int = 1) -> None:
        self._tree = tree
        self.session = Session()
        self.session.begin(session_id, timeout_ms=1_000, asked_at_ms=0)
        self.losses: list[bool | None] = []
        self.multis: list[tuple[Operation, ...]] = []
        self.multi_bytes_max = 1 << 30
        self.owners: dict[str, int] = {}
        """Shared between the sessions of one tree, so that each sees who made what."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tree, name)

    def another_session(self, session_id: int) -> LossyStore:
        other = LossyStore(self._tree, session_id)
        other.owners = self.owners
        return other

    def size_bytes(self, operation: Operation) -> int:
        return len(operation.path)

    async def get(self, path: str) -> Node | None:
        node = await self._tree.get(path)
        if node is None or not node.owner:
            return node
        return Node(node.data, node.version, node.czxid, node.mzxid, self.owners[path])

    async def multi(self, operations: Sequence[Operation]) -> list[Done]:
        self.multis.append(tuple(operations))
        loss = self.losses.pop(0) if self.losses else None
        if loss is False:
            raise StoreUncertain("lost on its way")
        done = await self._tree.multi(operations)
        for operation in operations:
            if isinstance(operation, Create) and operation.is_ephemeral:
                self.owners[operation.path] = self.session.id
        if loss is True:
            raise StoreUncertain("the answer was lost")
        return done
