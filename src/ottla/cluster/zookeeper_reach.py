"""Whether ZooKeeper is connected, and why not.

The log is told once, not with each attempt: they go on every second for as long as it lasts.
"""

from __future__ import annotations

import asyncio
import logging

log = logging.getLogger(__name__)


class Reach:
    """How a store stands with its servers."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._connected = asyncio.Event()
        self._is_told = False
        self.trouble = "nothing answers"

    @property
    def is_connected(self) -> bool:
        return self._connected.is_set()

    async def wait(self) -> None:
        """Returns when there is a connection."""
        await self._connected.wait()

    def begin(self) -> None:
        """There is a connection."""
        self._connected.set()
        if self._is_told:
            log.info("connected to %s", self._address)
            self._is_told = False

    def end(self) -> None:
        """There is none, and that is as it should be."""
        self._connected.clear()

    def lose(self) -> None:
        """There is none any more. Why is known to those who try again."""
        self._connected.clear()
        self._tell("the connection broke")

    def fail(self, reason: str) -> None:
        """There is none, for this reason."""
        self._connected.clear()
        self.trouble = reason
        self._tell(reason)

    def _tell(self, reason: str) -> None:
        if not self._is_told:
            log.warning("not connected to %s (%s); trying again", self._address, reason)
            self._is_told = True
