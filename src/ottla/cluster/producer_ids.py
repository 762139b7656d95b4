"""Ids for producers, never given out twice in a cluster: taken from the store a block at a time."""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.cluster import layout
from ottla.cluster.store import (
    Create,
    MetadataStore,
    Node,
    Operation,
    SetData,
    StoreConflict,
    StoreFailed,
    StoreUncertain,
)
from ottla.model.ids import BrokerId, ProducerId

BLOCK_SIZE: Final = 1000
PRODUCER_ID_MAX: Final = (1 << 63) - 1
ATTEMPTS_MAX: Final = 10


def next_block(
    node: Node | None, broker_id: BrokerId, *, at_least: int = 0
) -> tuple[range, Operation]:
    """The block after the last one given out, and the operation that claims it."""
    path = layout.PRODUCER_ID_BLOCK
    start = 0
    if node is not None:
        last = layout.decode(layout.ProducerIdBlockNode, node.data, path)
        if not last.block_end.isdecimal():
            raise StoreFailed(f"the metadata at {path} has no number as its block_end")
        start = int(last.block_end) + 1
    start = max(start, at_least)
    block = range(start, start + BLOCK_SIZE)
    if block[-1] > PRODUCER_ID_MAX:
        raise StoreFailed("all producer ids of this cluster are used up")
    claim = layout.ProducerIdBlockNode(
        broker=broker_id, block_start=str(block[0]), block_end=str(block[-1])
    )
    if node is None:
        return block, Create(path, layout.encode(claim))
    return block, SetData(path, layout.encode(claim), node.version)


class ProducerIds:
    """Gives out producer ids from this broker's block; a used-up block is followed by a new one."""

    def __init__(self, store: MetadataStore, broker_id: BrokerId) -> None:
        self._store = store
        self._broker_id = broker_id
        self._block = iter(range(0))
        self._turn = asyncio.Lock()

    async def next(self) -> ProducerId:
        """An id that no producer has had."""
        async with self._turn:
            producer_id = next(self._block, None)
            if producer_id is None:
                self._block = iter(await self._claim())
                producer_id = next(self._block)
            return ProducerId(producer_id)

    async def _claim(self) -> range:
        for _ in range(ATTEMPTS_MAX):
            node = await self._store.get(layout.PRODUCER_ID_BLOCK)
            block, operation = next_block(node, self._broker_id)
            try:
                await self._store.multi([operation])
            except (StoreConflict, StoreUncertain):
                continue  # a block claimed without our knowing is lost, not given out twice
            return block
        raise StoreFailed("no block of producer ids could be claimed: too many others try")
