"""How a broker becomes known, and how one broker becomes the controller: by one multi each.

A node in the way, or an answer that was lost, is looked at before anything is decided:
- a registration of this very session is the one we wanted to make (its answer was lost);
- one of a session this process had before is a remainder that nobody will miss;
- any other belongs to a living broker with the same id, or to a dead one not yet given up.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from ottla.cluster import layout
from ottla.cluster.store import (
    Create,
    Delete,
    MetadataStore,
    Node,
    Operation,
    SetData,
    StoreConflict,
    StoreError,
    StoreFailed,
    StoreUncertain,
    StoreUnreachable,
)
from ottla.errors import ErrorCode
from ottla.model.ids import BrokerId

ATTEMPTS_MAX: Final = 8


class BrokerIdInUse(StoreError):
    """Another session has registered a broker with this id."""

    code = ErrorCode.DUPLICATE_BROKER_REGISTRATION

    def __init__(self, broker_id: BrokerId, owner: int) -> None:
        self.broker_id = broker_id
        self.owner = owner
        super().__init__(
            f"a broker with id {broker_id} is registered already (session {owner:#x}); give this"
            " one another node.id, or wait until the other's session has ended"
        )


class ControllerMoved(StoreError):
    """Another broker decides for the cluster; nothing was changed."""

    code = ErrorCode.NOT_CONTROLLER

    def __init__(self, controller_id: int | None = None) -> None:
        self.controller_id = controller_id
        known = f"broker {controller_id}" if controller_id is not None else "another broker"
        super().__init__(f"{known} is the controller now")


class Controllership(msgspec.Struct, frozen=True):
    """The right to decide, for as long as the epoch's node keeps this version."""

    epoch: int
    epoch_version: int


async def register(
    store: MetadataStore,
    broker_id: BrokerId,
    broker: layout.BrokerNode,
    *,
    patience_seconds: float = 0.0,
) -> int:
    """Make a broker known while the session lives; its epoch.

    BrokerIdInUse where another session holds the id, for longer than `patience_seconds`: a killed
    broker's registration stays until its session times out.
    """
    path = layout.broker_path(broker_id)
    in_use: StoreError | None = None
    gone = asyncio.Event()
    watch = store.watch(path, lambda _: gone.set())
    try:
        async with asyncio.timeout(patience_seconds or None):
            while True:
                gone.clear()
                try:
                    return await _register(store, broker_id, layout.encode(broker))
                except BrokerIdInUse as error:
                    in_use = error
                    if not patience_seconds:
                        raise
                await gone.wait()
    except TimeoutError:
        raise in_use or StoreUnreachable(f"{path} could not be made in time") from None
    finally:
        watch.cancel()


async def _register(store: MetadataStore, broker_id: BrokerId, data: bytes) -> int:
    path = layout.broker_path(broker_id)
    make: list[Operation] = [Create(path, is_ephemeral=True), SetData(path, data, version=0)]
    in_the_way: list[Operation] = []
    for _ in range(ATTEMPTS_MAX):
        try:
            done = await store.multi([*in_the_way, *make])
            return done[-1].czxid
        except (StoreConflict, StoreUncertain):
            node = await store.get(path)
        if node is None:
            in_the_way = []
        elif node.owner == store.session.id and node.data == data:
            return node.czxid
        elif node.owner == store.session.id or store.session.was_own(node.owner):
            in_the_way = [Delete(path, node.version)]
        else:
            raise BrokerIdInUse(broker_id, node.owner)
    raise StoreFailed(f"the registration at {path} did not succeed in {ATTEMPTS_MAX} attempts")


async def become_controller(
    store: MetadataStore, broker_id: BrokerId, now_ms: int
) -> Controllership:
    """Take the decisions over in a new epoch; ControllerMoved where another broker has them."""
    controller = layout.ControllerNode(broker_id=broker_id, timestamp=str(now_ms))
    data = layout.encode(controller)
    in_the_way: list[Operation] = []
    for _ in range(ATTEMPTS_MAX):
        before = await _controller_epoch(store)
        epoch = layout.decode_controller_epoch(before.data) + 1
        text = layout.encode_controller_epoch(epoch)
        operations: list[Operation] = [
            *in_the_way,
            Create(layout.CONTROLLER, data, is_ephemeral=True),
            SetData(layout.CONTROLLER_EPOCH, text, before.version),
        ]
        try:
            done = await store.multi(operations)
            return Controllership(epoch, done[-1].version)
        except (StoreConflict, StoreUncertain):
            node = await store.get(layout.CONTROLLER)
        in_the_way = []
        if node is None:
            continue
        after = await _controller_epoch(store)
        if node.owner == store.session.id and node.data == data and after.data == text:
            return Controllership(epoch, after.version)
        holder = layout.decode(layout.ControllerNode, node.data, layout.CONTROLLER)
        is_own = node.owner == store.session.id or store.session.was_own(node.owner)
        if is_own and holder.broker_id == broker_id:
            # Left from when we doubted our session: nothing was decided by it since.
            in_the_way = [Delete(layout.CONTROLLER, node.version)]
            continue
        raise ControllerMoved(holder.broker_id)
    raise StoreFailed(f"no controller was elected in {ATTEMPTS_MAX} attempts")


async def _controller_epoch(store: MetadataStore) -> Node:
    node = await store.get(layout.CONTROLLER_EPOCH)
    if node is None:
        raise StoreFailed(f"there is no {layout.CONTROLLER_EPOCH} in the metadata")
    return node
