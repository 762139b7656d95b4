"""A wait for new data in any of several partitions: what Kafka keeps in a purgatory is an await."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Watcher(Protocol):
    """Is told what happens to a partition."""

    def added(self, size_bytes: int) -> None:
        """So many bytes became readable."""

    def wake(self) -> None:
        """Anything else happened that a reader may have to look at."""


class DataWatch:
    """Wakes its owner once at least `bytes_min` more bytes became readable, or on any change of
    role that the owner has to look at again."""

    __slots__ = ("_future", "_remaining")

    def __init__(self, loop: asyncio.AbstractEventLoop, bytes_min: int) -> None:
        self._remaining = bytes_min
        self._future: asyncio.Future[None] = loop.create_future()

    def added(self, size_bytes: int) -> None:
        """So many bytes became readable."""
        self._remaining -= size_bytes
        if self._remaining <= 0:
            self.wake()

    def wake(self) -> None:
        """Ends the wait, whatever it was for."""
        if not self._future.done():
            self._future.set_result(None)

    async def wait(self, seconds: float) -> None:
        """Returns when woken, or after so many seconds."""
        handle = self._future.get_loop().call_later(seconds, self.wake)
        try:
            await self._future
        finally:
            handle.cancel()
