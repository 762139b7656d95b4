"""Ranges of partitions for a plain thread: fetched by a loop in another, decoded in this one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

from ottla.clients.arrow.read_plan import ReadPlan
from ottla.clients.arrow.reading import Reading
from ottla.clients.blocking.loop_thread import LoopThread, close_at_exit
from ottla.clients.failures import ClientClosed

if TYPE_CHECKING:
    import pyarrow


class BlockingReading:
    """What is left to read, and the thread that fetches it. Close it."""

    __slots__ = ("__weakref__", "_loop", "_reading")

    def __init__(self, plan: ReadPlan, begin: Callable[[Reading], Awaitable[None]]) -> None:
        self._loop = LoopThread("reader")
        try:
            self._reading = self._loop.run(_open(plan, begin))
        except BaseException:
            self._loop.stop()
            raise
        close_at_exit(self)

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """One after the other, to the end."""
        while (answer := self._loop.run(self._reading.next_answer())) is not None:
            yield from answer.decoded()

    def close(self, timeout_s: float | None = None) -> None:
        """Disconnects and ends the thread. Once is enough."""
        del timeout_s  # nothing here waits for anybody
        if self._loop.is_foreign:
            return
        try:
            self._loop.run(self._reading.close())
        except ClientClosed:
            return
        self._loop.stop()

    def disown(self) -> None:
        """Called in a forked process, which cannot use its parent's."""
        # Every call goes through the loop, which notices.


async def _open(plan: ReadPlan, begin: Callable[[Reading], Awaitable[None]]) -> Reading:
    reading = Reading(plan)
    try:
        await begin(reading)
    except BaseException:
        await reading.close()
        raise
    return reading
