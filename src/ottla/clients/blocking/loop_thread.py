"""An event loop in a thread of its own, and the way into it for callers that may block.

Functions of the user's that a coroutine wants called (a rebalance listener, say) run in the thread
that waits for that coroutine, not in the loop's: they may block, and may use the client again.

Invariants:
1. Whoever waits in `run` gets the coroutine's result or exception, or cancels it by its own.
2. The loop's thread never waits in `run`; a process that was forked off never uses its parent's.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import logging
import os
import queue
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from ottla.clients.callers_thread import Item, inbox_of_caller
from ottla.clients.failures import ClientClosed, SendsFailed, WrongUse
from ottla.errors import OttlaError

T = TypeVar("T")


class Closable(Protocol):
    """A client that should not outlive the interpreter."""

    def close(self, timeout_s: float | None = None) -> None: ...

    def disown(self) -> None:
        """This is a copy in a forked process: takes every short way past the loop away."""


_open_clients: weakref.WeakSet[Any] = weakref.WeakSet()
_orphans: list[Orphan] = []
EXIT_TIMEOUT_S = 10.0

_log = logging.getLogger("ottla.clients")


def close_at_exit(client: Closable) -> None:
    """Closes the client when the interpreter ends, if nobody has before."""
    _open_clients.add(client)


class AsyncClosable(Protocol):
    """What runs on the loop behind a client."""

    async def close(self, timeout_s: float | None) -> None: ...


class Orphan:
    """A client that was dropped and not closed: what it was given is still on its way."""

    __slots__ = ("_core", "_loop")

    def __init__(self, core: AsyncClosable, loop: LoopThread) -> None:
        self._core = core
        self._loop = loop

    def close(self, timeout_s: float | None = None) -> None:
        """Lets it finish, and ends its thread."""
        if not self._loop.is_foreign:
            self._loop.run(self._core.close(timeout_s))


def close_orphan_at_exit(orphan: Orphan) -> None:
    """Closes what nobody else can."""
    _orphans.append(orphan)


def _close_all() -> None:
    for client in [*_open_clients, *_orphans]:
        try:
            client.close(EXIT_TIMEOUT_S)
        except (ClientClosed, SendsFailed):
            pass  # the latter was logged
        except OttlaError as error:  # nobody is left who could catch it
            _log.warning("closing at exit: %s", error)


def _disown_all() -> None:
    for client in list(_open_clients):
        client.disown()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_disown_all)


class LoopThread:
    """The loop and its thread, for one client."""

    __slots__ = ("_loop", "_pid", "_thread", "_what")

    def __init__(self, what: str) -> None:
        self._what = what
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name=f"ottla-{what}", daemon=True
        )
        self._thread.start()

    def call_soon(self, function: Callable[[], object]) -> None:
        """Has the function called on the loop, from any thread."""
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:
            raise ClientClosed(self._what) from None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs the coroutine on the loop and waits for it here."""
        try:
            self._check()
        except BaseException:
            coroutine.close()
            raise
        inbox: queue.SimpleQueue[Item] = queue.SimpleQueue()
        box: list[asyncio.Task[T]] = []

        def start() -> None:
            context = contextvars.copy_context()
            context.run(inbox_of_caller.set, inbox)
            task = self._loop.create_task(coroutine, context=context)
            task.add_done_callback(lambda _: inbox.put(None))
            box.append(task)

        self.call_soon(start)
        try:
            while (item := inbox.get()) is not None:
                self._run_here(*item)
        except BaseException:
            self.call_soon(lambda: box[0].cancel() if box else None)
            raise
        return box[0].result()

    def _run_here(self, function: Callable[[], Any], future: asyncio.Future[Any]) -> None:
        """Runs a user's function in this thread and tells the loop what came of it."""

        def answer(result: Any, error: BaseException | None) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)

        try:
            result = function()
        except Exception as error:
            failure = error
            self.call_soon(lambda: answer(None, failure))
        else:
            self.call_soon(lambda: answer(result, None))

    def stop(self) -> None:
        """Ends the loop and its thread; in a forked process there is nothing to end."""
        if self._pid != os.getpid() or self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def is_foreign(self) -> bool:
        """Whether this is a copy in a forked process, without its thread."""
        return self._pid != os.getpid()

    def _check(self) -> None:
        if self.is_foreign:
            raise ClientClosed(self._what, "belongs to the process that forked this one")
        if self._loop.is_closed():
            raise ClientClosed(self._what)
        if threading.get_ident() == self._thread.ident:
            raise WrongUse(f"a callback of the {self._what} cannot wait for the {self._what}")
