"""The metadata store of a single node: a SQLite file, worked on by one thread of its own.

In memory (for tests) there is no disk to wait for and therefore no thread.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

from ottla.cluster.session import Session
from ottla.cluster.sqlite_tree import SESSION_ID, SqliteTree
from ottla.cluster.store import Done, Node, NodeChanged, Operation, StoreFailed, Watch, Watcher
from ottla.cluster.watchers import Watchers

CHECKPOINT_SECONDS: Final = 1.0
"""How long after a commit it is moved into the file itself."""

P = ParamSpec("P")
T = TypeVar("T")


class EmbeddedStore:
    """A MetadataStore in a file. The thread's queue keeps operations in the order of the calls."""

    def __init__(
        self, tree: SqliteTree, loop: asyncio.AbstractEventLoop, thread: ThreadPoolExecutor | None
    ) -> None:
        self._tree = tree
        self._loop = loop
        self._thread = thread
        self._watchers = Watchers(loop)
        self._is_closed = False
        self._checkpoint: asyncio.TimerHandle | None = None
        self.session = Session(SESSION_ID, never_ends=True)

    @classmethod
    async def open(cls, path: Path | None) -> EmbeddedStore:
        """Open or create the file; None for a tree in memory. StoreFailed says why it cannot be."""
        loop = asyncio.get_running_loop()
        if path is None:
            return cls(SqliteTree(None), loop, None)
        thread = ThreadPoolExecutor(1, thread_name_prefix="ottla-metadata")
        try:
            tree = await loop.run_in_executor(thread, SqliteTree, path)
        except BaseException:
            thread.shutdown(wait=False)
            raise
        return cls(tree, loop, thread)

    @property
    def multi_bytes_max(self) -> int:
        return sys.maxsize

    def size_bytes(self, operation: Operation) -> int:
        return len(operation.path)

    async def get(self, path: str) -> Node | None:
        return await self._call(self._tree.get, path)

    async def get_many(self, paths: Sequence[str]) -> dict[str, Node]:
        found = await self._call(lambda: [(path, self._tree.get(path)) for path in paths])
        return {path: node for path, node in found if node is not None}

    async def children(self, path: str) -> list[str]:
        return await self._call(self._tree.children, path)

    async def read_all(self, prefix: str) -> dict[str, Node]:
        return await self._call(self._tree.read_all, prefix)

    async def multi(self, operations: Sequence[Operation]) -> list[Done]:
        done = await self._call(self._commit, tuple(operations))
        if self._thread is not None and self._checkpoint is None:
            self._checkpoint = self._loop.call_later(CHECKPOINT_SECONDS, self._begin_checkpoint)
        return done

    def _begin_checkpoint(self) -> None:
        self._checkpoint = None
        if self._thread is not None and not self._is_closed:
            self._thread.submit(self._tree.checkpoint)

    def watch(self, prefix: str, watcher: Watcher) -> Watch:
        return self._watchers.add(prefix, watcher)

    async def close(self) -> None:
        if self._is_closed:
            return
        if self._checkpoint is not None:
            self._checkpoint.cancel()
        try:
            await self._call(self._end)
        finally:
            self._is_closed = True
            if self._thread is not None:
                self._thread.shutdown(wait=False)

    async def _call(self, function: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
        if self._is_closed:
            raise StoreFailed("the metadata store is closed")
        if self._thread is None:
            return function(*arguments, **keywords)
        return await self._loop.run_in_executor(
            self._thread, lambda: function(*arguments, **keywords)
        )

    def _commit(self, operations: Sequence[Operation]) -> list[Done]:
        done, changes = self._tree.multi(operations)
        self._tell(changes)
        return done

    def _end(self) -> None:
        self._tell(self._tree.close())

    def _tell(self, changes: list[NodeChanged]) -> None:
        """Told from here and not by the waiting caller, who may be cancelled after the commit.

        The loop runs its calls in order, so that watchers are told before `multi` returns.
        """
        if self._thread is None:
            self._watchers.tell(changes)
        elif changes:
            self._loop.call_soon_threadsafe(self._watchers.tell, changes)
