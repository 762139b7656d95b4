"""The broker as a child process that a test may kill, stop, restart and look into.

Kept apart from ottla.testing on purpose: these tests must see exactly what a user's shell sees.
"""

import os
import random
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from support.eventually import eventually

REPOSITORY = Path(__file__).resolve().parents[2]
READY = re.compile(r"ready on (\S+):(\d+), data in (.+)")
GIVEN_TO_NOBODY = range(12_000, 15_000)
START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 30.0


def free_port() -> int:
    """A port nobody listens on, of those that a system gives to nobody of its own accord: a broker
    that is down for a moment finds it free again."""
    for port in random.SystemRandom().sample(GIVEN_TO_NOBODY, len(GIVEN_TO_NOBODY)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no port is free on this machine")


class BrokerProcess:
    """`python -m ottla serve` on one data directory; restarts keep port and directory."""

    def __init__(self, data: Path, *, settings: Mapping[str, str] | None = None) -> None:
        self.data = data
        self.settings = dict(settings or {})
        self.port = 0
        self._starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._output = data.parent / f"{data.name}-output"
        self._output.mkdir(parents=True, exist_ok=True)

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def command(self) -> list[str]:
        """The command line a user would type."""
        options = [f"--set={name}={value}" for name, value in self.settings.items()]
        listen = f"127.0.0.1:{self.port}"
        serve = ["serve", "--listen", listen, "--data", str(self.data)]
        return [sys.executable, "-m", "ottla", *serve, *options]

    def start(self) -> None:
        """Start and wait for the ready line; raise with the broker's own words where it fails."""
        assert not self.is_alive, "already running"
        self._starts += 1
        self.port = self.port or free_port()
        environment = dict(os.environ, PYTHONPATH=str(REPOSITORY / "src"), PYTHONUNBUFFERED="1")
        with self._stream("out").open("wb") as out, self._stream("err").open("wb") as err:
            self._process = subprocess.Popen(
                self.command(), stdout=out, stderr=err, env=environment, start_new_session=True
            )
        ready = eventually(self._readiness, "the ready line", timeout_seconds=START_SECONDS_MAX)
        if ready is not True:
            self.port = int(ready[2])
            return
        raise RuntimeError(f"the broker ended with {self._process.returncode}: {self.errors()}")

    def _readiness(self) -> re.Match[str] | bool:
        """The ready line, True where the process ended instead, False while neither is so."""
        ended = not self.is_alive
        found = READY.search(self._stream("out").read_text(errors="replace"))
        return found or ended

    def _stream(self, kind: str) -> Path:
        return self._output / f"{self._starts}.{kind}"

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self._signal(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        return self._signal(signal.SIGTERM)

    def send_signal(self, number: signal.Signals) -> None:
        """And do not wait for what comes of it."""
        assert self._process is not None, "not started"
        self._process.send_signal(number)

    def _signal(self, number: signal.Signals) -> int:
        assert self._process is not None, "not started"
        self._process.send_signal(number)
        return self._process.wait(STOP_SECONDS_MAX)

    def restart(self) -> None:
        """Start again on the same port and directory, killing what still runs."""
        if self.is_alive:
            self.kill()
        self.start()

    def close(self) -> None:
        """End the process whatever its state."""
        if self.is_alive:
            assert self._process is not None
            self._process.kill()
            self._process.wait(STOP_SECONDS_MAX)

    def errors(self) -> str:
        """All that the broker wrote to stderr and stdout since its first start."""
        return "".join(path.read_text(errors="replace") for path in sorted(self._output.iterdir()))

    def resident_bytes(self) -> int:
        """Resident memory of the process, as the kernel counts it."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found, "no VmRSS"
        return int(found[1]) * 1024

    def open_files(self) -> int:
        """How many descriptors the process holds."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))
