"""Those who wait until records of a partition are committed. Does not know why they may be not."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import deque
from typing import Final

from ottla.errors import TimedOut
from ottla.model.ids import Offset

KEPT_MIN: Final = 64
"""Waits kept without looking whether they have ended."""


class CommitWaits:
    """Waits in the order of the offsets they are for."""

    __slots__ = ("_purge_at", "queue")

    def __init__(self) -> None:
        self.queue: deque[tuple[Offset, asyncio.Future[None]]] = deque()
        self._purge_at = KEPT_MIN

    def add(self, end_offset: Offset, deadline: float, future: asyncio.Future[None]) -> None:
        """Lets `future` end when the records before `end_offset` are committed, or in failure at
        the loop's time `deadline`."""
        # Mostly at the end; a batch that was sent again is waited for among those before it.
        insort(self.queue, (end_offset, future), key=_end_offset)
        if len(self.queue) > self._purge_at:
            # While nothing is committed, waits end by their deadlines and others come.
            self.queue = deque(each for each in self.queue if not each[1].done())
            self._purge_at = max(KEPT_MIN, 2 * len(self.queue))
        timer = future.get_loop().call_at(deadline, _time_out, future)
        future.add_done_callback(lambda _: timer.cancel())

    def committed(self, end_offset: Offset) -> None:
        """All before `end_offset` is committed."""
        queue = self.queue
        while queue and queue[0][0] <= end_offset:
            _, future = queue.popleft()
            if not future.done():
                future.set_result(None)

    def fail(self, error: Exception) -> None:
        """Nothing of it will be committed here."""
        while self.queue:
            _, future = self.queue.popleft()
            if not future.done():
                future.set_exception(error)


def _end_offset(waiter: tuple[Offset, asyncio.Future[None]]) -> Offset:
    return waiter[0]


def _time_out(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_exception(TimedOut("the records were not committed in time"))
