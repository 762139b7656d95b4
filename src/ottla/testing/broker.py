"""A broker inside the test's own process: a real port, real files, a loop in a thread."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

from ottla.broker.app import Broker as BrokerApp
from ottla.settings.describe import BrokerLayers
from ottla.testing.clock import MovableClock, MovableLoop
from ottla.testing.faults import Faults

T = TypeVar("T")

MEMORY_DIRECTORY: Final = Path("/dev/shm")
"""A directory in memory, where the system has one: nothing of a test touches a disk."""
STOP_GRACE_SECONDS: Final = 0.5
"""A test's clients are gone, or are not going to be."""
FAST_SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "200",
}
"""What a production broker does slowly on purpose and a test does not want to wait for."""


class Broker:
    """A broker for the length of a test.

    `clock.advance(hours=1)` makes time-outs and retention happen now; `faults.fail("Produce",
    "NOT_LEADER_OR_FOLLOWER", times=2)` and its like make trouble. `settings` are Kafka's names.
    """

    def __init__(
        self,
        *,
        data: Path | str | None = None,
        port: int = 0,
        settings: Mapping[str, str] | None = None,
        in_memory: bool = True,
    ) -> None:
        self._given_data = Path(data) if data else None
        self._port = port
        given = {name: str(value) for name, value in (settings or {}).items()}  # 6 is written too
        self._settings = {**FAST_SETTINGS, **given}
        self._in_memory = in_memory
        self._loop = MovableLoop()
        self._thread: threading.Thread | None = None
        self._app: BrokerApp | None = None
        self._remove_data: Callable[[], object] | None = None
        self.clock = MovableClock(self._loop)
        self.faults = Faults()
        self.data = self._given_data or Path()
        self.bootstrap_servers = ""

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        """Starts the broker and returns when clients can connect."""
        if self._app is not None:
            raise RuntimeError("this broker is running already: `restart` stops it first")
        if self._given_data is None and not self.data.name:
            self.data = Path(tempfile.mkdtemp(prefix="ottla-", dir=self._temporary_parent()))
            # A broker that nobody closes would keep its memory after the process: this ends it.
            self._remove_data = weakref.finalize(self._loop, shutil.rmtree, self.data, True)
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._loop.run_forever, name="ottla-test-broker", daemon=True
            )
            self._thread.start()
        texts = {
            **self._settings,
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port}",
            "log.dirs": str(self.data),
        }
        try:
            self._app = self._run(self._start(texts))
        except BaseException:
            self.close()
            raise
        self.bootstrap_servers = str(self._app.address)
        self._port = self._app.address.port

    def stop(self) -> None:
        """Stops the broker as SIGTERM would. Data stays until `close`."""
        app, self._app = self._app, None
        if app is not None:
            self._run(app.stop(STOP_GRACE_SECONDS))

    def restart(self) -> None:
        """Stops, and starts again on the same data and port."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stops, ends the thread and removes the data that was made for this broker."""
        if self._thread is None:
            return
        self.stop()
        self._run(_end_all_tasks())
        self._run(self._loop.shutdown_default_executor())  # there: a loop may run in this thread
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._thread = None
        self._loop.close()
        if self._remove_data is not None:
            self._remove_data()

    def _temporary_parent(self) -> str | None:
        if self._in_memory and MEMORY_DIRECTORY.is_dir():
            return str(MEMORY_DIRECTORY)
        return None

    async def _start(self, texts: Mapping[str, str]) -> BrokerApp:
        app = BrokerApp(BrokerLayers(static=texts), self.clock, interception=self.faults)
        await app.start()
        return app

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


async def _end_all_tasks() -> None:
    """Ends what still waits on the loop, as `asyncio.run` does: delayed requests, for example."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
