"""The picture in force and the one way to change it: decide on a draft, commit, then publish.

Changes are made one after another. The picture is replaced only after the store has committed, so
that nothing is told to a client that a crash could take back.

Invariants:
1. What the controller writes happens only while nobody else has become controller: each multi
   checks the version of the controller epoch. Leaders write nothing but their own sets in sync,
   each with the version its state must have, and need no such check.
2. A multi whose answer was lost is looked for before it is sent again.
3. A change too large for one multi is cut only where the draft allows it, and its parts are
   committed in order.
4. Where others write as well, the picture follows what the store tells. News are read in the same
   turn as changes are made: a picture never goes back.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from ottla.cluster import layout, registration
from ottla.cluster.certainty import multi_for_certain
from ottla.cluster.image import BrokerImage, ClusterImage, Draft, broker_from, image_from
from ottla.cluster.news import News, read_news
from ottla.cluster.registration import ControllerMoved, Controllership
from ottla.cluster.store import (
    ROOT,
    ChangeKind,
    Check,
    Create,
    Delete,
    MetadataLost,
    MetadataStore,
    MultiTooLarge,
    NodeChanged,
    Operation,
    StoreConflict,
    StoreError,
    StoreUncertain,
    Watch,
)
from ottla.model.ids import BrokerId

CHANGE_ATTEMPTS_MAX: Final = 4
OPEN_ATTEMPTS_MAX: Final = 8
READ_AGAIN_SECONDS: Final = 0.5
"""How soon news are read again that could not be."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class ClusterMetadata:
    """The cluster as this broker knows it. Readers take `image` and keep it for one answer."""

    def __init__(self, store: MetadataStore, image: ClusterImage) -> None:
        self.store = store
        self.image = image
        self.observers: list[Callable[[ClusterImage], None]] = []
        """Told of each new picture, once it is the one in force."""
        self._turn = asyncio.Lock()
        self._controllership: Controllership | None = None
        self._may_be_behind = False
        """Whether the store may have something that the picture has not."""
        self._news = deque([News()])
        """In the order in which they must be seen; each is read in one go."""
        self._has_news = asyncio.Event()
        self._watch: Watch | None = None
        self._following: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls, store: MetadataStore, *, cluster_id: str, may_be_new: bool = True
    ) -> ClusterMetadata:
        """Read the tree; an empty one becomes a new cluster with the given id.

        MetadataLost if the tree is empty although it may not be new.
        """
        for _ in range(OPEN_ATTEMPTS_MAX - 1):
            nodes = await store.read_all(ROOT)
            if not may_be_new and layout.CLUSTER_ID not in nodes:
                raise MetadataLost("it has no cluster in it")
            missing = _missing(nodes, cluster_id)
            if not missing:
                return cls(store, image_from(nodes))
            try:
                await store.multi(missing)
            except (StoreConflict, StoreUncertain):
                continue  # another broker of a new cluster was faster, or the answer was lost
        return cls(store, image_from(await store.read_all(ROOT)))

    @property
    def is_controller(self) -> bool:
        """Whether this broker was made controller and has not heard otherwise."""
        return self._controllership is not None

    async def reload(self) -> ClusterImage:
        """Read the whole tree again, for when somebody else has changed it."""
        image = image_from(await self.store.read_all(ROOT))
        self._check_cluster(image.cluster_id)
        self._may_be_behind = False
        self._publish(image)
        return image

    def follow(self) -> None:
        """Keep the picture up to date with what others write, from now on."""
        self._watch = self.store.watch(ROOT, self._noticed)
        self._noticed(NodeChanged(ROOT, ChangeKind.CHANGED))  # what came before the watch
        self._following = asyncio.get_running_loop().create_task(self._follow())

    async def stop_following(self) -> None:
        """The picture stays as it is."""
        if self._watch is not None and self._following is not None:
            self._watch.cancel()
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    def _noticed(self, change: NodeChanged) -> None:
        if self._news[-1].comes_before(change.path):
            self._news.append(News())
        self._news[-1].note(change.path)
        if self._news[-1]:
            self._has_news.set()

    async def _follow(self) -> None:
        told = ""
        while True:
            await self._has_news.wait()
            self._has_news.clear()
            try:
                while any(self._news):
                    async with self._turn:
                        await self._take_news()
            except StoreError as error:
                if str(error) != told:  # it may last: one line for each reason
                    log.warning("news of the cluster could not be read: %s", error)
                told = str(error)
                await asyncio.sleep(READ_AGAIN_SECONDS)
                self._has_news.set()

    async def _take_news(self) -> None:
        news = self._news.popleft()
        if not self._news:
            self._news.append(News())
        try:
            image = await read_news(self.store, self.image, news)
        except StoreError:
            self._news[0].add(news)
            raise
        self._check_cluster(image.cluster_id)
        if image != self.image:
            self._publish(image)

    def _check_cluster(self, found: str) -> None:
        """A store that was wiped, or belongs to another cluster, knows nothing of our topics. They
        must not be taken for deleted ones."""
        ours = self.image.cluster_id
        if found != ours:
            has = f"cluster {found}" if found else "no cluster"
            raise MetadataLost(f"it has {has} in it, and this broker belongs to cluster {ours}")

    async def confirm_cluster(self) -> None:
        """MetadataLost if the store has another cluster in it than it had."""
        node = await self.store.get(layout.CLUSTER_ID)
        found = ""
        if node is not None:
            found = layout.decode(layout.ClusterIdNode, node.data, layout.CLUSTER_ID).id
        self._check_cluster(found)

    def _publish(self, image: ClusterImage) -> None:
        held = self._controllership
        if held is not None and image.controller_epoch > held.epoch:
            self._controllership = None
        self.image = image
        for observer in self.observers:
            observer(image)

    async def register(
        self, broker_id: BrokerId, broker: layout.BrokerNode, *, patience_seconds: float = 0.0
    ) -> BrokerImage:
        """Make this broker known for as long as the session lives.

        BrokerIdInUse where another has the id, still after `patience_seconds`.
        """
        async with self._turn:
            epoch = await registration.register(
                self.store, broker_id, broker, patience_seconds=patience_seconds
            )
            registered = broker_from(broker_id, broker, epoch)
            brokers = {**self.image.brokers, broker_id: registered}
            self._publish(replace(self.image, brokers=brokers))
        return registered

    async def become_controller(self, broker_id: BrokerId, now_ms: int) -> int:
        """Take the decisions of this cluster over, in a new controller epoch; the epoch.

        ControllerMoved where another broker has them. Where others may have written, the picture is
        read again before anything is decided on it.
        """
        async with self._turn:
            held = await registration.become_controller(self.store, broker_id, now_ms)
            self._controllership = held
            self._may_be_behind |= self._following is not None
            self._publish(replace(self.image, controller_id=broker_id, controller_epoch=held.epoch))
            return held.epoch

    def doubt_controllership(self) -> None:
        """Decide nothing any more: the session may have ended, and another may decide already."""
        self._controllership = None

    async def resign(self) -> None:
        """Give the decisions up: none is written from now on. Others are free to take them over."""
        held, self._controllership = self._controllership, None
        if held is None:
            return
        guard = Check(layout.CONTROLLER_EPOCH, held.epoch_version)
        try:
            await self.store.multi([guard, Delete(layout.CONTROLLER)])
        except StoreError:
            return  # somebody else is controller already, or our session ends

    async def change(self, decide: Callable[[Draft], T]) -> T:
        """Let `decide` change a draft of the picture, commit it and publish it; what it returned.

        `decide` may run again on a newer picture, if somebody else has changed the tree; what it
        raises changes nothing. A caller that is cancelled leaves a change that has begun to finish,
        so that the picture cannot fall behind the store. ControllerMoved unless this broker is the
        controller; then it has resigned.
        """
        return await asyncio.shield(_begun(self._change(decide, is_leaders=False)))

    async def change_as_leader(self, decide: Callable[[Draft], T]) -> T:
        """As `change`, for the sets in sync of partitions that this broker leads.

        Each operation must expect the version of the state that the leader knows.
        """
        return await asyncio.shield(_begun(self._change(decide, is_leaders=True)))

    async def _change(self, decide: Callable[[Draft], T], *, is_leaders: bool) -> T:
        async with self._turn:
            for _ in range(CHANGE_ATTEMPTS_MAX - 1):
                try:
                    return await self._attempt(decide, is_leaders=is_leaders)
                except StoreConflict:
                    await self.reload()
            return await self._attempt(decide, is_leaders=is_leaders)

    async def _attempt(self, decide: Callable[[Draft], T], *, is_leaders: bool) -> T:
        if self._may_be_behind:
            await self.reload()
        guard = [] if is_leaders else self._guard()
        draft = Draft(self.image)
        result = decide(draft)
        for part in self._parts(draft, guard):
            await self._write([*guard, *part])
        self._may_be_behind = False
        if draft.operations:
            self._publish(draft.image())
        return result

    async def _write(self, operations: Sequence[Operation]) -> None:
        self._may_be_behind = True
        try:
            await multi_for_certain(self.store, operations)
        except StoreConflict as conflict:
            if conflict.path == layout.CONTROLLER_EPOCH:
                self._controllership = None
                raise ControllerMoved from conflict
            raise

    def _guard(self) -> list[Operation]:
        """A controller that was deposed without knowing it can write nothing."""
        if self._controllership is None:
            raise ControllerMoved
        return [Check(layout.CONTROLLER_EPOCH, self._controllership.epoch_version)]

    def _parts(self, draft: Draft, guard: Sequence[Operation]) -> list[list[Operation]]:
        """The draft's operations in as few multis as the store can take."""
        spare = self.store.multi_bytes_max - sum(map(self.store.size_bytes, guard))
        parts: list[list[Operation]] = []
        left = 0
        for piece in draft.pieces():
            size = sum(map(self.store.size_bytes, piece))
            if size > spare:
                raise MultiTooLarge(size, spare)
            if size > left or not parts:
                parts.append([])
                left = spare
            parts[-1] += piece
            left -= size
        return parts


def _begun(change: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A change that goes on when nobody waits for it any more; then its failure is nobody's."""
    task = asyncio.ensure_future(change)
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return task


def _missing(nodes: Collection[str], cluster_id: str) -> list[Operation]:
    """What every cluster has and this tree has not."""
    missing: list[Operation] = [Create(path) for path in layout.ROOTS if path not in nodes]
    if layout.CLUSTER_ID not in nodes:
        node = layout.ClusterIdNode(id=cluster_id)
        missing.append(Create(layout.CLUSTER_ID, layout.encode(node)))
    if layout.CONTROLLER_EPOCH not in nodes:
        missing.append(Create(layout.CONTROLLER_EPOCH, layout.encode_controller_epoch(0)))
    return missing
