"""Whether a multi whose answer was lost has happened: what its effects would be, and a look.

A multi happens wholly or not at all, so that it is enough to look at the first and the last thing
it would have changed. A node that somebody else has changed since looks as if nothing happened;
sending the multi again then fails on the version it expects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.cluster.store import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    Done,
    MetadataStore,
    Node,
    Operation,
    SetData,
    StoreUncertain,
)

ATTEMPTS_MAX: Final = 4


async def multi_for_certain(
    store: MetadataStore, operations: Sequence[Operation]
) -> list[Done] | None:
    """Do a multi, and look where its answer is lost; None where it happened unanswered.

    Raises as `multi` does. Every operation must be safe to look at: a change with the version it
    expects, a creation with a name of its own, a deletion.
    """
    for _ in range(ATTEMPTS_MAX - 1):
        try:
            return await store.multi(operations)
        except StoreUncertain:
            if await has_happened(store, operations):
                return None
    return await store.multi(operations)


async def has_happened(store: MetadataStore, operations: Sequence[Operation]) -> bool:
    """Whether the tree shows what the operations would have done."""
    doing = [operation for operation in operations if not isinstance(operation, Check)]
    looked_at = {id(each): each for each in (doing[0], doing[-1])} if doing else {}
    for operation in looked_at.values():
        if not shows(await store.get(operation.path), operation, store.session.id):
            return False
    return bool(looked_at)


def shows(node: Node | None, operation: Operation, session_id: int) -> bool:
    """Whether a node is as an operation of that session would have left it."""
    match operation:
        case Create(is_sequential=True):
            return False
        case Create(data=data, is_ephemeral=is_ephemeral):
            owner = session_id if is_ephemeral else 0
            return node is not None and node.data == data and node.owner == owner
        case SetData(data=data, version=version):
            is_next = node is not None and version in (ANY_VERSION, node.version - 1)
            return is_next and node is not None and node.data == data
        case Delete():
            return node is None
        case Check():
            return True
