"""The picture in force and the one way to change it: decide on a draft, commit, then publish.

Changes are made one after another. The picture is replaced only after the store has committed, so
that nothing is told to a client that a crash could take back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from ottla.cluster import layout
from ottla.cluster.image import BrokerImage, ClusterImage, Draft, image_from
from ottla.cluster.store import (
    ROOT,
    Check,
    Create,
    MetadataStore,
    Operation,
    SetData,
    StoreConflict,
    StoreFailed,
)
from ottla.model.ids import BrokerId

CHANGE_ATTEMPTS_MAX: Final = 4

T = TypeVar("T")


class ClusterMetadata:
    """The cluster as this broker knows it. Readers take `image` and keep it for one answer."""

    def __init__(self, store: MetadataStore, image: ClusterImage) -> None:
        self.store = store
        self.image = image
        self.observers: list[Callable[[ClusterImage], None]] = []
        """Told of each new picture, once it is the one in force."""
        self._turn = asyncio.Lock()
        self._controller_epoch_version: int | None = None

    @classmethod
    async def open(cls, store: MetadataStore, *, cluster_id: str) -> ClusterMetadata:
        """Read the tree; an empty one becomes a new cluster with the given id."""
        nodes = await store.read_all(ROOT)
        missing: list[Operation] = [Create(path) for path in layout.ROOTS if path not in nodes]
        if layout.CLUSTER_ID not in nodes:
            node = layout.ClusterIdNode(id=cluster_id)
            missing.append(Create(layout.CLUSTER_ID, layout.encode(node)))
        if layout.CONTROLLER_EPOCH not in nodes:
            missing.append(Create(layout.CONTROLLER_EPOCH, layout.encode_controller_epoch(0)))
        if missing:
            await store.multi(missing)
            nodes = await store.read_all(ROOT)
        return cls(store, image_from(nodes))

    async def reload(self) -> ClusterImage:
        """Read the whole tree again, for when somebody else has changed it."""
        self._publish(image_from(await self.store.read_all(ROOT)))
        return self.image

    def _publish(self, image: ClusterImage) -> None:
        self.image = image
        for observer in self.observers:
            observer(image)

    async def register(self, broker_id: BrokerId, broker: layout.BrokerNode) -> BrokerImage:
        """Make this broker known for as long as the session lives."""
        path = layout.broker_path(broker_id)
        async with self._turn:
            await self.store.multi([Create(path, layout.encode(broker), is_ephemeral=True)])
            node = await self.store.get(path)
            if node is None:
                raise StoreFailed(f"the registration at {path} was lost as soon as it was made")
            registered = BrokerImage(broker_id, broker.endpoints, broker.rack, node.czxid)
            brokers = {**self.image.brokers, broker_id: registered}
            self._publish(replace(self.image, brokers=brokers))
        return registered

    async def become_controller(self, broker_id: BrokerId, now_ms: int) -> int:
        """Take the decisions of this cluster over, in a new controller epoch; the epoch."""
        async with self._turn:
            return await self._become_controller(broker_id, now_ms)

    async def change(self, decide: Callable[[Draft], T]) -> T:
        """Let `decide` change a draft of the picture, commit it and publish it; what it returned.

        `decide` may run again on a newer picture, if somebody else has changed the tree; what it
        raises changes nothing. A caller that is cancelled leaves a change that has begun to finish,
        so that the picture cannot fall behind the store.
        """
        return await asyncio.shield(asyncio.ensure_future(self._change(decide)))

    async def _become_controller(self, broker_id: BrokerId, now_ms: int) -> int:
        node = await self.store.get(layout.CONTROLLER_EPOCH)
        if node is None:
            raise StoreFailed(f"there is no {layout.CONTROLLER_EPOCH} in the metadata")
        epoch = layout.decode_controller_epoch(node.data) + 1
        controller = layout.ControllerNode(broker_id=broker_id, timestamp=str(now_ms))
        data = layout.encode_controller_epoch(epoch)
        done = await self.store.multi(
            [
                Create(layout.CONTROLLER, layout.encode(controller), is_ephemeral=True),
                SetData(layout.CONTROLLER_EPOCH, data, node.version),
            ]
        )
        self._controller_epoch_version = done[1].version
        self._publish(replace(self.image, controller_id=broker_id, controller_epoch=epoch))
        return epoch

    async def _change(self, decide: Callable[[Draft], T]) -> T:
        async with self._turn:
            for _ in range(CHANGE_ATTEMPTS_MAX - 1):
                try:
                    return await self._attempt(decide)
                except StoreConflict:
                    await self.reload()
            return await self._attempt(decide)

    async def _attempt(self, decide: Callable[[Draft], T]) -> T:
        draft = Draft(self.image)
        result = decide(draft)
        if draft.operations:
            await self.store.multi([*self._guard(), *draft.operations])
            self._publish(draft.image())
        return result

    def _guard(self) -> list[Operation]:
        """A controller that was deposed without knowing it can write nothing."""
        if self._controller_epoch_version is None:
            return []
        return [Check(layout.CONTROLLER_EPOCH, self._controller_epoch_version)]
