"""The metadata store of a single node: a SQLite file, worked on by one thread of its own.

In memory (for tests) there is no disk to wait for and therefore no thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar

from ottla.cluster.sqlite_tree import SqliteTree
from ottla.cluster.store import (
    ROOT,
    Done,
    Node,
    NodeChanged,
    Operation,
    StoreFailed,
    Watcher,
    check_path,
)

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _Watch:
    prefix: str
    watcher: Watcher
    watches: list[_Watch] = field(repr=False)

    def cancel(self) -> None:
        if self in self.watches:
            self.watches.remove(self)

    def sees(self, path: str) -> bool:
        if self.prefix == ROOT or path == self.prefix:
            return True
        return path.startswith(self.prefix) and path[len(self.prefix)] == "/"


class EmbeddedStore:
    """A MetadataStore in a file. The thread's queue keeps operations in the order of the calls."""

    def __init__(
        self, tree: SqliteTree, loop: asyncio.AbstractEventLoop, thread: ThreadPoolExecutor | None
    ) -> None:
        self._tree = tree
        self._loop = loop
        self._thread = thread
        self._watches: list[_Watch] = []
        self._is_closed = False

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

    async def get(self, path: str) -> Node | None:
        return await self._call(self._tree.get, path)

    async def children(self, path: str) -> list[str]:
        return await self._call(self._tree.children, path)

    async def read_all(self, prefix: str) -> dict[str, Node]:
        return await self._call(self._tree.read_all, prefix)

    async def multi(self, operations: Sequence[Operation]) -> list[Done]:
        return await self._call(self._commit, tuple(operations))

    def watch(self, prefix: str, watcher: Watcher) -> _Watch:
        check_path(prefix)
        watch = _Watch(prefix, watcher, self._watches)
        self._watches.append(watch)
        return watch

    async def close(self) -> None:
        if self._is_closed:
            return
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
            self._notify(changes)
        elif changes:
            self._loop.call_soon_threadsafe(self._notify, changes)

    def _notify(self, changes: list[NodeChanged]) -> None:
        for change in changes:
            for watch in tuple(self._watches):
                if watch in self._watches and watch.sees(change.path):
                    self._tell_one(watch, change)

    def _tell_one(self, watch: _Watch, change: NodeChanged) -> None:
        """A watcher that fails may not fail the commit it hears of, nor the other watchers."""
        try:
            watch.watcher(change)
        except Exception as error:
            message = f"a watcher of {watch.prefix} failed on {change.path}"
            self._loop.call_exception_handler({"message": message, "exception": error})
