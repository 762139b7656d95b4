"""A whole world from one seed: loop, network, ensemble, and the machines that brokers run on."""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import traceback
import warnings
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any, Final, TypeVar
from unittest import mock

from ottla.broker.app import Broker
from ottla.broker.system_clock import SystemClock
from ottla.settings.describe import BrokerLayers
from ottla.storage.simulated_disk import SimulatedDisk
from simulation.ensemble import Ensemble, SimulatedZooKeeper
from simulation.loop import KERNEL, PROCESS, Process, SimulatedLoop
from simulation.network import Network
from simulation.reality import replaced
from simulation.trace import Trace

PORT: Final = 9092
RESTART_SECONDS: Final = 1.0
"""How soon a broker that could not start, or fell over, is started again."""
T = TypeVar("T")


class Machine:
    """A computer with a disk and, most of the time, a broker on it."""

    def __init__(self, world: World, node_id: int, settings: Mapping[str, str]) -> None:
        self._world = world
        self.node_id = node_id
        self.name = f"broker-{node_id}"
        self.disk = SimulatedDisk()
        self.settings = {
            **settings,
            "node.id": str(node_id),
            "listeners": f"PLAINTEXT://{self.name}:{PORT}",
            "log.dirs": "/data",
        }
        self.process: Process | None = None
        self.app: Broker | None = None
        """The broker, once it has started."""
        self.graves: list[object] = []
        self._starts_again = False
        self.falls: list[str] = []
        """Why a broker could not start or ended by itself."""

    @property
    def is_up(self) -> bool:
        return self.process is not None

    @property
    def is_serving(self) -> bool:
        return self.app is not None and self.process is not None and not self.process.is_stopped

    def start(self) -> None:
        """Starts the broker, unless one runs; after one that is about to stop has stopped."""
        self._starts_again = True
        if self.process is not None:
            return
        self._world.network.switch_on(self.name)
        self.process = process = Process(self.name)
        self._world.note(self.name, "starts")
        self._world.loop.start(process, lambda: self._run(process))

    def kill(self) -> None:
        """kill -9: the machine goes on, the broker's memory is gone."""
        process = self._bury("is killed")
        if process is not None:
            self._world.network.kill(process)

    def lose_power(self) -> None:
        """Nothing is said to anybody, and what was not synced may be gone."""
        process = self._bury("loses power")
        if process is not None:
            self._world.network.switch_off(process)
            self.disk.lose_power(self._world.chance_of_disks.randrange)

    def pause(self) -> None:
        """SIGSTOP."""
        if self.process is not None:
            self._world.note(self.name, "is paused")
            self.process.is_stopped = True

    def resume(self) -> None:
        """SIGCONT."""
        if self.process is not None and self.process.is_stopped:
            self._world.note(self.name, "goes on")
            self._world.loop.resume(self.process)

    def stop(self) -> None:
        """SIGTERM."""
        process, app = self.process, self.app
        if process is None or app is None or process.is_stopped:
            return
        self._world.note(self.name, "is told to stop")
        self._starts_again = False

        async def end() -> None:
            try:
                await app.stop()
            except OSError as error:
                self._world.note(self.name, f"stops with an error: {error!r}")
            if self.process is process:
                self._bury("has stopped")
                self._world.network.kill(process)
                if self._starts_again:
                    self.start()

        self._world.loop.start(process, end)

    def _bury(self, how: str) -> Process | None:
        process, self.process = self.process, None
        if process is None:
            return None
        self._world.note(self.name, how)
        process.is_dead = True
        self.graves.append((process, self.app))
        self.app = None
        self.disk.forget_locks()
        return process

    async def _run(self, process: Process) -> None:
        app = Broker(BrokerLayers(static=self.settings), SystemClock())
        self.graves.append(app)
        try:
            await app.start()
        except Exception as error:
            self.falls.append(f"{type(error).__name__}: {error}")
            self._world.note(self.name, f"cannot start: {error!r}")
            if self.process is process:
                self._bury("falls")
                self._world.network.kill(process)
                self._world.later(RESTART_SECONDS, self.start)
            return
        self._world.note(self.name, "serves")
        self.app = app


class World:
    """Everything there is. Make it, `run` something in it, look at what is left."""

    def __init__(self, seed: int, *, on_note: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.trace = Trace()
        self._on_note = on_note
        self.loop = SimulatedLoop(self.chance("threads"))
        self.network = Network(self.loop, self.chance("network"), self.trace)
        self.loop.network = self.network
        self.ensemble = Ensemble(self.network, self.chance("ensemble"))
        self.chance_of_disks = self.chance("disks")
        self.machines: list[Machine] = []
        self.surprises: list[str] = []
        """Errors that nobody caught."""
        self._held: list[object] = []

    def chance(self, purpose: str) -> Random:
        """A stream of numbers of its own, so that new choices here do not change those there."""
        return Random(f"{self.seed}/{purpose}")

    def add_brokers(self, count: int, settings: Mapping[str, str]) -> None:
        self.machines += [Machine(self, number, settings) for number in range(1, count + 1)]

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{machine.name}:{PORT}" for machine in self.machines)

    def note(self, *facts: object) -> None:
        """Something worth telling happened."""
        self.trace.add(self.loop.time(), *facts)
        if self._on_note is not None:
            self._on_note(f"{self.loop.time():9.4f}  {' '.join(map(str, facts))}")

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Does something outside of every process."""
        self.loop.call_later(seconds, action, context=KERNEL)

    def in_process(self, name: str, main: Callable[[], Coroutine[Any, Any, None]]) -> Process:
        """Runs a client's program on a machine of its own."""
        process = Process(name)
        self.loop.start(process, main)
        self._held.append(process)
        return process

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Runs the world until `main` is done."""
        with replaced(self.loop, self.seed), self._substituted(), _quiet_unless(self._on_note):
            self.loop.set_exception_handler(self._surprised)
            try:
                return self.loop.run_until_complete(main)
            finally:
                self.loop.set_exception_handler(lambda *_: None)
                self._leave()

    def _leave(self) -> None:
        """Lets go of everything now: what is finalized may run code, and must find no real time."""
        self.loop.close()
        self.loop.forget()
        self._held.clear()
        for part in (self.network, self.ensemble, *self.machines):
            vars(part).clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of coroutines that nobody awaited: their time is over
            gc.collect()

    def _surprised(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        task = context.get("future") or context.get("task")
        work = task.get_coro() if isinstance(task, asyncio.Task) else None
        name = getattr(work, "__qualname__", "")
        what = f"{context.get('message')}: {name} {error!r}"
        if self._on_note is not None and error is not None:
            self._on_note("".join(traceback.format_exception(error)))
        self.note("surprise", what)
        self.surprises.append(what)

    @contextmanager
    def _substituted(self) -> Iterator[None]:
        """The brokers' disks and their way to the ensemble."""
        zookeeper = functools.partial(SimulatedZooKeeper, self.ensemble)
        with ExitStack() as stack:
            for target, value in (
                ("ottla.cluster.zookeeper.ZooKeeperClient", zookeeper),
                ("ottla.broker.app.LocalDisk", self._disk),
            ):
                stack.enter_context(mock.patch(target, value))
            yield

    def _disk(self) -> SimulatedDisk:
        process = PROCESS.get()
        (machine,) = (each for each in self.machines if process and each.name == process.machine)
        return machine.disk


@contextmanager
def _quiet_unless(on_note: Callable[[str], None] | None) -> Iterator[None]:
    """Brokers' logs are noise, unless somebody wants to read the story."""
    if on_note is not None:
        yield
        return
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
