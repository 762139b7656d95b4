"""Tells what is ready; whoever asked to be called directly is called while the loop still polls.

asyncio takes a descriptor that is ready through a list of events, a queue of handles and a context
before anybody reads from it, all of it in Python: for a request that comes alone that is a good
part of its cost. Descriptors watched here are called as soon as the kernel names them. All others,
asyncio's own, stay in a selector of theirs, whose descriptor is one among ours.

Linux only. Has the methods of a selector that asyncio's loop calls.
"""

from __future__ import annotations

import select
import selectors
from collections.abc import Callable, Mapping
from typing import Any, Final

EVENTS_MAX: Final = 128
"""So many descriptors are served before the loop turns to anything else."""
READABLE: Final[int] = getattr(select, "EPOLLIN", 0)
WRITABLE: Final[int] = getattr(select, "EPOLLOUT", 0)

Call = Callable[[int], None]
"""Is told which events came."""


class DirectSelector:
    """A poll over descriptors with a call each, and over a selector for the rest."""

    def __init__(self, on_error: Callable[[Exception], None]) -> None:
        self._on_error = on_error
        self._others = selectors.DefaultSelector()
        self._epoll = select.epoll()
        self._poll = self._epoll.poll
        self._calls: dict[int, Call] = {}
        self._others_descriptor: int = self._others.fileno()
        self._epoll.register(self._others_descriptor, READABLE)

    # --- descriptors that are called ---

    def watch(self, descriptor: int, events: int, call: Call) -> None:
        """Calls whenever one of the events has come, until told otherwise."""
        if descriptor in self._calls:
            self._epoll.modify(descriptor, events)
        else:
            self._epoll.register(descriptor, events)
        self._calls[descriptor] = call

    def unwatch(self, descriptor: int) -> bool:
        """Calls no more, not even for events that have come; False if it was not watched."""
        if self._calls.pop(descriptor, None) is None:
            return False
        self._epoll.unregister(descriptor)
        return True

    def add_writer(self, descriptor: int, callback: Callable[[], None]) -> None:
        """Calls whenever the descriptor takes more; as a loop's, without the detour."""

        def call(_events: int) -> None:
            callback()

        self.watch(descriptor, WRITABLE, call)

    def remove_writer(self, descriptor: int) -> bool:
        """Calls no more; False if it never did."""
        return self.unwatch(descriptor)

    # --- what asyncio calls ---

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[tuple[selectors.SelectorKey, int]] = []
        calls = self._calls
        for descriptor, events in self._poll(timeout, EVENTS_MAX):
            call = calls.get(descriptor)
            if call is not None:
                try:
                    call(events)
                except Exception as error:
                    self._on_error(error)
            elif descriptor == self._others_descriptor:
                ready = self._others.select(0)
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._others.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._others.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._others.modify(fileobj, events, data)

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._others.get_key(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._others.get_map()

    def close(self) -> None:
        self._calls.clear()
        self._epoll.close()
        self._others.close()
