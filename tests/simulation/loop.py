"""An event loop without time and threads: everything that happens, happens in one known order.

Time is a number. It jumps to the next timer when nothing is ready, and moves on a little with every
round, so that a loop that waits for time by going round gets there. Work for threads is done on the
loop, some time after it was asked for. Sockets are the network's (`network.py`).

Each callback belongs to a process (`Process`), by the context it was made in. A killed process's
callbacks are never run, a stopped one's wait until it goes on. What a dead process leaves is kept
as it lies: nothing of it may be finalized, for finalizers run code.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, Final

ROUND_SECONDS: Final = 20e-6
ROUNDS_MAX: Final = 1_000_000
CLEANING_MIN: Final = 100
KERNEL: Final = contextvars.Context()
"""What happens outside of every process: the network, the ensemble, the machines."""


class Process:
    """One life of a program on a machine."""

    def __init__(self, machine: str) -> None:
        self.machine = machine
        self.is_dead = False
        self.is_stopped = False
        self.clock_ahead_seconds = 0.0
        self.work_seconds = (0.0001, 0.004)
        """How long work of threads takes: mostly a sync of the disk."""
        self.held: list[asyncio.Handle] = []
        self.context = contextvars.Context()
        self.context.run(PROCESS.set, self)

    def __repr__(self) -> str:
        return f"<{self.machine}{' dead' * self.is_dead}>"


PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)


class Stuck(Exception):
    """Nothing is ready and no timer runs: whoever waits, waits forever."""


class Runaway(Exception):
    """More happened than a whole world needs: something goes round in circles."""


class _Work:
    """Something asked of a thread."""

    def __init__(self, future: asyncio.Future[Any], function: Callable[[], Any]) -> None:
        self._future = future
        self._function = function
        self._result: Any = None
        self._error: BaseException | None = None
        self.is_done = False

    def run(self) -> None:
        if self.is_done:
            return
        self.is_done = True
        try:
            self._result = self._function()
        except Exception as error:
            self._error = error

    def tell(self) -> None:
        self.run()
        if self._future.done():
            return
        if self._error is not None:
            self._future.set_exception(self._error)
        else:
            self._future.set_result(self._result)


class _Task(asyncio.Task[Any]):
    """A task whose place in a set does not depend on where it lies in memory."""

    number = 0

    def __hash__(self) -> int:
        return self.number


class _Future(asyncio.Future[Any]):
    """As `_Task`."""

    number = 0

    def __hash__(self) -> int:
        return self.number


class SimulatedLoop(asyncio.BaseEventLoop):
    """The loop of a whole simulated world. `network` is set by whoever makes one."""

    def __init__(self, chance: Random) -> None:
        super().__init__()
        self._now = 0.0
        self._chance = chance
        self._threads: dict[tuple[int, int], tuple[Any, float, list[_Work]]] = {}
        self._dead: list[asyncio.Handle] = []
        self.network: Any = None
        self.rounds = 0
        self._made = 0
        self.set_task_factory(self._create_task)

    def time(self) -> float:
        return self._now

    def create_future(self) -> asyncio.Future[Any]:
        future = _Future(loop=self)
        self._made += 1
        future.number = self._made
        return future

    def _create_task(self, _: Any, work: Any, **named: Any) -> asyncio.Task[Any]:
        self._made += 1
        number = self._made
        task = _Task.__new__(_Task)
        task.number = number  # before anybody can put it into a set
        task.__init__(work, loop=self, **named)  # type: ignore[misc]
        return task

    # --- processes ---

    def start(self, process: Process, main: Callable[[], Any]) -> None:
        """Runs an asynchronous function as a process's own."""
        self.call_soon(lambda: self.create_task(main()), context=process.context)

    def resume(self, process: Process) -> None:
        """A stopped process goes on with what has come meanwhile."""
        process.is_stopped = False
        held, process.held = process.held, []
        self._ready.extend(held)

    def forget(self) -> None:
        """Lets go of what the dead have left."""
        self._dead.clear()
        self._threads.clear()

    # --- running ---

    def _run_once(self) -> None:
        self._drop_cancelled()
        ready: deque[asyncio.Handle] = self._ready
        timers = self._scheduled
        if not ready:
            if not timers:
                raise Stuck
            self._now = max(self._now, timers[0].when())
        self._now += ROUND_SECONDS
        self.rounds += 1
        if self.rounds > ROUNDS_MAX:
            raise Runaway
        while timers and timers[0]._when <= self._now:
            timer = heapq.heappop(timers)
            timer._scheduled = False
            ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            process = handle._context.get(PROCESS)
            if process is not None and (process.is_dead or process.is_stopped):
                (self._dead if process.is_dead else process.held).append(handle)
                continue
            handle._run()

    def _drop_cancelled(self) -> None:
        timers = self._scheduled
        if self._timer_cancelled_count > max(CLEANING_MIN, len(timers) // 2):
            for timer in timers:
                timer._scheduled = not timer._cancelled
            timers[:] = [timer for timer in timers if not timer._cancelled]
            heapq.heapify(timers)
            self._timer_cancelled_count = 0
        while timers and timers[0]._cancelled:
            self._timer_cancelled_count -= 1
            heapq.heappop(timers)._scheduled = False

    def _write_to_self(self) -> None:
        """There is no other thread that would have to wake this one."""

    def _process_events(self, event_list: list[Any]) -> None:
        """There are no descriptors."""

    # --- threads ---

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        """Does the work at some moment of the time it takes. One executor's work is in line."""
        process = PROCESS.get()
        future = self.create_future()
        work = _Work(future, lambda: func(*args))
        least, most = process.work_seconds if process is not None else (0.0, 0.0)
        key = (id(process), id(executor))
        _, free_at, works = self._threads.get(key, (executor, 0.0, []))
        begins = max(self._now, free_at) if executor is not None else self._now
        ends = begins + least + (most - least) * self._chance.random() ** 3
        works = [each for each in works if not each.is_done]
        works.append(work)
        self._threads[key] = (executor, ends, works)
        self.call_at(begins + (ends - begins) * self._chance.random(), work.run)
        self.call_at(ends, work.tell)
        return future

    def finish_work(self, executor: Any) -> None:
        """Does what an executor still has to do, now."""
        _, _, works = self._threads.get((id(PROCESS.get()), id(executor)), (None, 0.0, []))
        for work in works:
            work.run()

    # --- sockets ---

    async def create_server(  # type: ignore[override]
        self, protocol_factory: Any, host: str | None = None, port: int = 0, **_: Any
    ) -> Any:
        return self.network.listen(protocol_factory, host, port)

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Any, host: str, port: int, **_: Any
    ) -> Any:
        return await self.network.connect(protocol_factory, host, port)
