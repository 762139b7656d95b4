"""The metadata store of a cluster: a branch of the tree of a ZooKeeper ensemble.

Reads go behind a `sync`, so that they see what others have committed (rule 7 of store.py); the sync
travels in front of the read, not before it. Only a client of the ensemble's leader may for a moment
not see what another server has confirmed: ZooKeeper's leader tells its followers of a commit before
it applies it, and lets a `sync` of its own clients pass. Compare-and-set and the watch make up for
it: who decides by an old reading is refused, and is told to read again.

One lasting watch on the whole branch feeds all watchers; after a connection was lost it is set
again, and every watcher is told to read.

Waiting is bounded by the session's timeout: a store that cannot be reached for longer raises
StoreUnreachable, and StoreUncertain where a multi was on its way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import wraps
from itertools import chain
from typing import Any, Final, ParamSpec, TypeVar

from ottla.cluster import zookeeper_wire as wire
from ottla.cluster.session import Session
from ottla.cluster.store import (
    ChangeKind,
    Check,
    Create,
    Done,
    MultiTooLarge,
    Node,
    NodeChanged,
    Operation,
    SetData,
    StoreFailed,
    StoreUncertain,
    StoreUnreachable,
    Watch,
    Watcher,
    check_path,
    child_of,
)
from ottla.cluster.watchers import Watchers
from ottla.cluster.zookeeper_address import ZooKeeperAddress
from ottla.cluster.zookeeper_branch import Branch
from ottla.cluster.zookeeper_client import (
    Changed,
    Connected,
    ConnectionLost,
    Disconnected,
    Event,
    Expired,
    Refused,
    Request,
    Troubled,
    ZooKeeperClient,
)
from ottla.cluster.zookeeper_reach import Reach
from ottla.model.clock import Clock

PACKET_BYTES_MAX: Final = 1_000_000
"""A server closes the connection on a packet above its jute.maxbuffer, by default 1,048,575."""
OPEN_SECONDS_MAX: Final = 30.0
PATHS_PER_READ: Final = 1_000
HEARTBEATS_PER_TIMEOUT: Final = 10
OPERATION_BYTES: Final = 96
"""More than any operation takes besides its path and data."""

_KINDS: Final = {
    wire.EventType.CREATED: ChangeKind.CREATED,
    wire.EventType.DELETED: ChangeKind.DELETED,
    wire.EventType.CHANGED: ChangeKind.CHANGED,
}

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)


def _in_task(
    work: Callable[P, Coroutine[Any, Any, T]],
) -> Callable[P, Coroutine[Any, Any, T]]:
    """A broker's handlers begin outside of any task, where no time can be limited."""

    @wraps(work)
    async def run(*arguments: P.args, **named: P.kwargs) -> T:
        if asyncio.current_task() is not None:
            return await work(*arguments, **named)
        return await asyncio.get_running_loop().create_task(work(*arguments, **named))

    return run


class ZooKeeperStore:
    """A MetadataStore in ZooKeeper."""

    def __init__(self, address: ZooKeeperAddress, clock: Clock) -> None:
        self.address = address
        self.session = Session()
        self._clock = clock
        self._branch = Branch(
            address.chroot, wire.CREATOR_ONLY if address.options.acl == "creator" else wire.OPEN
        )
        self._loop = asyncio.get_running_loop()
        self._watchers = Watchers(self._loop)
        self._untold: dict[NodeChanged, None] = {}
        self._reach = Reach(str(address))
        self._is_closed = False
        self._is_open = False
        self._heartbeat: asyncio.TimerHandle | None = None
        self._beat: asyncio.Future[Any] | None = None
        self._client = ZooKeeperClient(address, clock, self._on_event)

    @classmethod
    async def open(
        cls, address: ZooKeeperAddress | str, clock: Clock, *, seconds_max: float = OPEN_SECONDS_MAX
    ) -> ZooKeeperStore:
        """Connect and make the chroot; StoreUnreachable where no server takes us up in time."""
        parsed = ZooKeeperAddress.parse(address) if isinstance(address, str) else address
        store = cls(parsed, clock)
        try:
            await store._open(seconds_max)
        except BaseException:
            await store.close()
            raise
        return store

    @property
    def is_connected(self) -> bool:
        return self._reach.is_connected

    @property
    def multi_bytes_max(self) -> int:
        return PACKET_BYTES_MAX

    def size_bytes(self, operation: Operation) -> int:
        data = operation.data if isinstance(operation, Create | SetData) else b""
        return len(self._branch.root) + len(operation.path) + len(data) + OPERATION_BYTES

    async def get(self, path: str) -> Node | None:
        check_path(path)
        return (await self._nodes([path])).get(path)

    async def get_many(self, paths: Sequence[str]) -> dict[str, Node]:
        for path in paths:
            check_path(path)
        return await self._nodes(paths) if paths else {}

    async def children(self, path: str) -> list[str]:
        check_path(path)
        (names,) = await self._read([wire.read_children([self._branch.whole(path)])])
        if isinstance(names[0], wire.Failed):
            raise self._branch.failure(Check(path, 0), names[0].code)
        return sorted(self._branch.own_children(path, names[0]))

    async def read_all(self, prefix: str) -> dict[str, Node]:
        check_path(prefix)
        nodes: dict[str, Node] = {}
        level = [prefix]
        while level:
            found, parents = await self._level(level)
            nodes |= found
            level = await self._below(parents)
        return dict(sorted(nodes.items()))

    async def multi(self, operations: Sequence[Operation]) -> list[Done]:
        for operation in operations:
            check_path(operation.path)
        if not operations:
            return []
        request = self._branch.multi(operations)
        if request.size_bytes > PACKET_BYTES_MAX:
            raise MultiTooLarge(request.size_bytes, PACKET_BYTES_MAX)
        await self._wait_connected()
        results = await self._commit(request)
        for operation, result in zip(operations, results, strict=True):
            if isinstance(result, wire.Failed) and result.code not in (wire.OK, wire.ROLLED_BACK):
                raise self._branch.failure(operation, result.code)
        return [self._branch.done(*pair) for pair in zip(operations, results, strict=True)]

    def watch(self, prefix: str, watcher: Watcher) -> Watch:
        return self._watchers.add(prefix, watcher)

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self.session.listeners.clear()
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        await self._client.stop()

    async def _open(self, seconds_max: float) -> None:
        self._client.start()
        try:
            async with asyncio.timeout(seconds_max):
                await self._reach.wait()
                await self._make_chroot()
                await self._watch_branch()
        except TimeoutError:
            raise StoreUnreachable(
                f"{self.address} gave no session within {seconds_max:g} seconds"
                f" ({self._reach.trouble}); check the address and that a quorum of servers runs"
            ) from None
        self._is_open = True
        self._keep_alive()

    async def _make_chroot(self) -> None:
        paths = self._branch.path_to_root()
        if not paths:
            return
        (found,) = await self._read([wire.read_nodes(paths)])
        for path, each in zip(paths, found, strict=True):
            if isinstance(each, wire.Failed):
                (result,) = await self._commit(self._branch.making(path))
                if isinstance(result, wire.Failed) and result.code != wire.NODE_EXISTS:
                    raise self._branch.failure(Create(path), result.code)

    async def _watch_branch(self) -> None:
        try:
            await self._client.ask(wire.AddWatch(self._branch.root))
        except Refused as error:
            raise StoreFailed(
                f"{self.address} cannot be watched ({error}); ZooKeeper 3.6 or newer is needed"
            ) from error

    # What comes from the connection, on the event loop.

    def _on_event(self, event: Event) -> None:
        match event:
            case Changed():
                self._on_change(event)
            case Connected():
                self.session.begin(event.session_id, event.timeout_ms, event.asked_at_ms)
                self._reach.begin()
                if self._is_open:
                    self._watch_again()
            case Disconnected() if self._is_closed:
                self._reach.end()
            case Disconnected():
                self._reach.lose()
            case Expired():
                self._reach.end()
                self.session.expire()
            case Troubled():
                self._reach.fail(event.reason)

    def _watch_again(self) -> None:
        def confirmed(answer: asyncio.Future[Any]) -> None:
            if answer.cancelled() or isinstance(answer.exception(), ConnectionLost):
                return  # the next connection brings us here again
            if (error := answer.exception()) is not None:
                log.error("the metadata can no longer be watched: %s", error)
            self._watchers.tell_all_to_read_again()

        self._client.ask(wire.AddWatch(self._branch.root)).add_done_callback(confirmed)

    def _on_change(self, event: Changed) -> None:
        kind = _KINDS.get(wire.EventType(event.kind)) if event.kind in _KINDS else None
        path = self._branch.own(event.path)
        if kind is None or path is None:
            return
        if not self._untold:
            self._loop.call_soon(self._tell_changes)
        self._untold[NodeChanged(path, kind)] = None

    def _tell_changes(self) -> None:
        changes, self._untold = self._untold, {}
        self._watchers.tell(changes)

    def _keep_alive(self) -> None:
        """Ask for an answer that only a living session gets, and look at the deadline."""
        self.session.doubt(self._clock.monotonic_ms())
        if self._reach.is_connected and (self._beat is None or self._beat.done()):
            self._beat = self._ask(wire.Sync(self._branch.root))
            self._beat.add_done_callback(_ignore_failure)
        period_ms = max(self.session.timeout_ms, 1_000) / HEARTBEATS_PER_TIMEOUT
        self._heartbeat = self._loop.call_later(period_ms / 1000, self._keep_alive)

    # Asking.

    def _ask(self, request: Request) -> asyncio.Future[Any]:
        """Ask something that ZooKeeper's leader answers; the answer moves the session's deadline.

        What a follower answers by itself proves nothing: it may be cut off from its leader.
        """
        session_id, asked_at_ms = self.session.id, self._clock.monotonic_ms()
        answer = self._client.ask(request)

        def confirm(settled: asyncio.Future[Any]) -> None:
            is_answer = not settled.cancelled() and settled.exception() is None
            if is_answer and self.session.id == session_id:
                self.session.confirm(asked_at_ms)

        answer.add_done_callback(confirm)
        return answer

    @_in_task
    async def _read(self, requests: Iterable[Request]) -> list[Any]:
        """The answers to reads, as of now or later. Reads may be repeated, and are."""
        asked = list(requests)
        try:
            async with asyncio.timeout(self._patience_seconds):
                while True:
                    await self._connected_or_closed()
                    sync = self._ask(wire.Sync(self._branch.root))
                    reads = [self._client.ask(request) for request in asked]
                    answers = await asyncio.gather(sync, *reads, return_exceptions=True)
                    failures = [each for each in answers if isinstance(each, BaseException)]
                    if not failures:
                        return answers[1:]
                    if refusal := next((e for e in failures if isinstance(e, Refused)), None):
                        raise StoreFailed(f"{self.address}: {refusal}")
                    self._reach.trouble = str(failures[0])
        except TimeoutError:
            raise self._unreachable() from None

    @_in_task
    async def _commit(self, request: wire.Multi) -> list[Any]:
        try:
            async with asyncio.timeout(self._patience_seconds):
                return list(await self._ask(request))
        except (ConnectionLost, TimeoutError) as error:
            raise StoreUncertain(
                f"the connection to {self.address} was lost before it answered a change ({error})"
            ) from error
        except Refused as error:
            raise StoreFailed(f"{self.address}: {error}") from error

    @_in_task
    async def _wait_connected(self) -> None:
        try:
            async with asyncio.timeout(self._patience_seconds):
                await self._connected_or_closed()
        except TimeoutError:
            raise self._unreachable() from None

    async def _connected_or_closed(self) -> None:
        if self._is_closed:
            raise StoreFailed("the metadata store is closed")
        await self._reach.wait()

    @property
    def _patience_seconds(self) -> float:
        timeout_ms = self.session.timeout_ms or self.address.options.session_timeout_ms
        return timeout_ms / 1000

    def _unreachable(self) -> StoreUnreachable:
        return StoreUnreachable(
            f"{self.address} has not answered for {self._patience_seconds:g} seconds"
            f" ({self._reach.trouble})"
        )

    # Reading many nodes.

    async def _level(self, paths: Sequence[str]) -> tuple[dict[str, Node], list[str]]:
        """The nodes at some paths, and which of them have children."""
        whole = [self._branch.whole(path) for path in paths]
        answers = await self._read(wire.read_nodes(part) for part in _parts(whole))
        nodes: dict[str, Node] = {}
        parents: list[str] = []
        for path, found in zip(paths, chain.from_iterable(answers), strict=True):
            if isinstance(found, wire.Failed):
                self._expect_missing(path, found)
                continue
            stat = found.stat
            nodes[path] = Node(found.data, stat.version, stat.czxid, stat.mzxid, stat.owner)
            if stat.child_count:
                parents.append(path)
        return nodes, parents

    async def _nodes(self, paths: Sequence[str]) -> dict[str, Node]:
        return (await self._level(paths))[0]

    async def _below(self, parents: Sequence[str]) -> list[str]:
        """The paths of all children of some nodes."""
        if not parents:
            return []
        answers = await self._read(
            wire.read_children([self._branch.whole(path) for path in part])
            for part in _parts(parents)
        )
        paths: list[str] = []
        for parent, names in zip(parents, chain.from_iterable(answers), strict=True):
            if isinstance(names, wire.Failed):
                self._expect_missing(parent, names)
                continue
            paths += [child_of(parent, name) for name in self._branch.own_children(parent, names)]
        return paths

    def _expect_missing(self, path: str, failed: wire.Failed) -> None:
        if failed.code != wire.NO_NODE:
            raise self._branch.failure(Check(path, 0), failed.code)


def _parts(paths: Sequence[str]) -> list[Sequence[str]]:
    return [paths[start : start + PATHS_PER_READ] for start in range(0, len(paths), PATHS_PER_READ)]


def _ignore_failure(answer: asyncio.Future[Any]) -> None:
    """A heartbeat that was not answered has told all by that."""
    if not answer.cancelled():
        answer.exception()
