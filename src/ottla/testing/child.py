"""A broker in a process of its own, to be killed and started again."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from ottla.testing.zookeeper import free_ports

START_SECONDS_MAX: Final = 30.0
STOP_SECONDS_MAX: Final = 30.0
PROGRAM: Final = (sys.executable, "-m", "ottla")
_READY: Final = "ready on "


class BrokerFailedToStart(RuntimeError):
    """The process ended, or said nothing, before it was ready; the message has its last words."""


class ChildBroker:
    """`ottla serve` as a child process. `kill` is a crash; `restart` uses the same data again.

    Ctrl-C and the like reach it too, unless it is to be a session of its own: then whoever started
    it is asked alone, and must not die without stopping it.
    """

    def __init__(
        self,
        *,
        data: Path | str | None = None,
        port: int = 0,
        settings: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        is_own_session: bool = False,
    ) -> None:
        self._own_directory = None if data else tempfile.TemporaryDirectory(prefix="ottla-test-")
        self.data = Path(data or self._own_directory.name)  # type: ignore[union-attr]
        self._port = port
        self.settings = dict(settings or {})
        """What it is started with; a change counts from the next start on."""
        self.program: Sequence[str] = PROGRAM
        """What runs; another program may take over the data at the next start."""
        self._arguments = tuple(arguments)
        self._is_own_session = is_own_session
        self._process: subprocess.Popen[str] | None = None
        self.bootstrap_servers = ""

    def __enter__(self) -> ChildBroker:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if self._own_directory is not None:
            self._own_directory.cleanup()

    @property
    def pid(self) -> int:
        """The process id of the running broker."""
        if self._process is None:
            raise RuntimeError("the broker is not running")
        return self._process.pid

    @property
    def log_path(self) -> Path:
        """Where everything the broker says on standard error goes."""
        return self.data.parent / f"{self.data.name}.stderr.log"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Starts the process and returns when clients can connect."""
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Starts the process, without waiting for it."""
        self._port = self._port or free_ports(1)[0]  # one it finds free again when it was down
        command = [*self.program, "serve"]
        command += ["--listen", f"127.0.0.1:{self._port}", "--data", str(self.data)]
        for name, value in self.settings.items():
            command += ["--set", f"{name}={value}"]
        command += self._arguments
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=log,
                stdin=subprocess.DEVNULL,
                text=True,
                start_new_session=self._is_own_session,
            )

    def wait_ready(self) -> None:
        """Returns when clients can connect."""
        assert self._process is not None, "not launched"
        line = self._first_line(self._process)
        if _READY not in line:
            self.kill()
            told = f"{line.strip()}\n{self.log_path.read_text()[-2000:]}".strip()
            raise BrokerFailedToStart(f"the broker did not start: {told.removeprefix('error: ')}")
        self.bootstrap_servers = line.split(_READY, 1)[1].split(",")[0].strip()
        self._port = int(self.bootstrap_servers.rsplit(":", 1)[1])

    def terminate(self) -> None:
        """Asks the broker to stop, without waiting until it has."""
        if self.is_running:
            os.kill(self.pid, signal.SIGTERM)
            os.kill(self.pid, signal.SIGCONT)  # a paused one would never notice

    def stop(self) -> int:
        """Asks the broker to stop and returns its exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int:
        """Ends the process as a crash would."""
        return self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Lets the process do nothing, its connections open."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Lets a paused process go on."""
        if self.is_running:
            os.kill(self.pid, signal.SIGCONT)

    def restart(self) -> None:
        """Starts again on the same data and port; stops first where it still runs."""
        self.stop()
        self.start()

    def _end(self, how: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        if process.poll() is None:
            os.kill(process.pid, how)
            os.kill(process.pid, signal.SIGCONT)  # a paused one would never notice
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        return process.returncode

    def _first_line(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        deadline = time.monotonic() + START_SECONDS_MAX
        while (left := deadline - time.monotonic()) > 0:
            if select.select([process.stdout], [], [], left)[0]:
                return process.stdout.readline()
        return ""
