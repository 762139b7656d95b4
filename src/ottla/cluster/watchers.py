"""Who wants to be told of changes in which branch of the tree. Does not know who makes them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from ottla.cluster.store import ROOT, ChangeKind, NodeChanged, Watch, Watcher, check_path


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


class Watchers:
    """The watchers of one store, called on the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._watches: list[_Watch] = []

    def add(self, prefix: str, watcher: Watcher) -> Watch:
        check_path(prefix)
        watch = _Watch(prefix, watcher, self._watches)
        self._watches.append(watch)
        return watch

    def tell(self, changes: Iterable[NodeChanged]) -> None:
        """Tell each watcher of what it sees, in order."""
        for change in changes:
            for watch in tuple(self._watches):
                if watch in self._watches and watch.sees(change.path):
                    self._tell_one(watch, change)

    def tell_all_to_read_again(self) -> None:
        """For when changes may have been missed: each watcher hears of the node it watches."""
        for watch in tuple(self._watches):
            if watch in self._watches:
                self._tell_one(watch, NodeChanged(watch.prefix, ChangeKind.CHANGED))

    def _tell_one(self, watch: _Watch, change: NodeChanged) -> None:
        """A watcher that fails may not fail the commit it hears of, nor the other watchers."""
        try:
            watch.watcher(change)
        except Exception as error:
            message = f"a watcher of {watch.prefix} failed on {change.path}"
            self._loop.call_exception_handler({"message": message, "exception": error})
