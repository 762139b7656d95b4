"""The sending half of a client's connection: frames in parts, each sent from where it stands.

asyncio's transport joins parts and copies what the socket does not take at once; with a megabyte of
records in a frame those copies cost more than the sending. So the socket is written to past the
transport, which then only reads.

Invariants:
1. Frames leave in the order in which they were written, and nothing else writes to the socket.
2. A part is held, and so must not change, until the socket has taken it or the writer is closed.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

Part = bytes | bytearray | memoryview

PARTS_AT_ONCE: Final = 64
"""More than this the kernel need not take in one call; its own limit is 1,024."""
CAN_WRITE_PARTS: Final = hasattr(os, "writev")


class FrameWriter:
    """What a broker is still to be sent, over a duplicate of the connection's descriptor."""

    __slots__ = (
        "_departures",
        "_descriptor",
        "_end",
        "_is_waiting",
        "_loop",
        "_unsent",
        "_went_on",
        "unsent_bytes",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        descriptor: int,
        went_on: Callable[[OSError | None], None],
    ) -> None:
        """`went_on` hears when what had to wait is gone, and of the error that ends it all."""
        self._loop = loop
        # asyncio refuses to watch a descriptor that a transport owns; a duplicate is another one.
        self._descriptor = os.dup(descriptor)
        self._went_on = went_on
        self._is_waiting = False
        self._unsent: deque[memoryview] = deque()
        self.unsent_bytes = 0
        """What the socket has not taken yet."""
        self._end = 0
        """How much was ever written."""
        self._departures: deque[tuple[int, asyncio.Future[bool]]] = deque()
        """Who waits until so much of it has left, in that order."""

    def write(self, parts: Iterable[Part]) -> None:
        """Sends what the socket takes now, and the rest as soon as it takes more."""
        if self._descriptor < 0:
            return
        for part in parts:
            view = memoryview(part)
            self._unsent.append(view)
            self.unsent_bytes += len(view)
            self._end += len(view)
        if not self._is_waiting:
            self.send()

    def send(self) -> None:
        """Sends as much as the socket takes."""
        try:
            while self._unsent:
                self._sent(os.writev(self._descriptor, list(islice(self._unsent, PARTS_AT_ONCE))))
        except (BlockingIOError, InterruptedError):
            self._wait()
        except OSError as error:
            self._went_on(error)
        else:
            if self._stop_waiting():
                self._went_on(None)

    async def wait_left(self) -> bool:
        """Returns when the socket has taken all that was written so far; False: it never will."""
        if self._descriptor < 0:
            return False
        if not self._unsent:
            return True
        left: asyncio.Future[bool] = self._loop.create_future()
        self._departures.append((self._end, left))
        return await left

    def close(self) -> None:
        """Gives the descriptor back, and drops what was not sent."""
        if self._descriptor >= 0:
            self._stop_waiting()
            os.close(self._descriptor)
            self._descriptor = -1
        self._unsent.clear()
        self.unsent_bytes = 0
        while self._departures:
            self._depart(has_left=False)

    def _sent(self, count: int) -> None:
        self.unsent_bytes -= count
        unsent = self._unsent
        while unsent and len(unsent[0]) <= count:
            count -= len(unsent.popleft())
        if count:
            unsent[0] = unsent[0][count:]
        position = self._end - self.unsent_bytes
        while self._departures and self._departures[0][0] <= position:
            self._depart(has_left=True)

    def _depart(self, *, has_left: bool) -> None:
        _, left = self._departures.popleft()
        if not left.done():
            left.set_result(has_left)

    def _wait(self) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self._loop.add_writer(self._descriptor, self.send)

    def _stop_waiting(self) -> bool:
        """Whether there was something to wait for."""
        was_waiting, self._is_waiting = self._is_waiting, False
        if was_waiting:
            self._loop.remove_writer(self._descriptor)
        return was_waiting
