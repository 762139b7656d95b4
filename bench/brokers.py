"""The brokers that are measured: Ottla, Apache Kafka beside it, or whatever answers at an address.

Apache Kafka is started through `../shared/bench/run-kafka.sh`, beside the checkout, where present.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Protocol

import wire

ROOT = Path(__file__).resolve().parent.parent
KAFKA_SCRIPTS = ROOT.parent / "shared" / "bench"
START_SECONDS_MAX = 120.0
STOP_SECONDS_MAX = 60.0
REMOVAL_SECONDS_MAX = 60.0
DELETED_FOLDERS = "*-delete"
"""What is left of deleted partitions: both brokers rename their folders first."""


class NotPossible(Exception):
    """This cannot be measured on this broker; the reason is the message."""


class BrokerFailed(Exception):
    """The broker did not start or stop as it should."""


class Broker(Protocol):
    """A broker under measurement."""

    name: str

    @property
    def bootstrap(self) -> str: ...

    @property
    def pid(self) -> int | None: ...

    def start(self) -> float:
        """Start it and return the seconds until it first answered a request."""
        ...

    def stop(self) -> None:
        """Stop it cleanly, keeping its data."""
        ...

    def wait_removed(self) -> None:
        """Wait until nothing is left of deleted topics, whose removal would count as work."""
        ...

    def remove_data(self) -> None:
        """Forget everything it stored; it is not running."""
        ...


class GivenBroker:
    """A broker somebody else runs, known by its address and perhaps its pid."""

    def __init__(self, name: str, bootstrap: str, pid: int | None) -> None:
        self.name = name
        self.bootstrap = bootstrap
        self.pid = pid

    def start(self) -> float:
        raise NotPossible(f"{self.bootstrap} was not started from here")

    def stop(self) -> None:
        raise NotPossible(f"{self.bootstrap} was not started from here")

    def wait_removed(self) -> None:
        """Its disk is not ours to look at."""

    def remove_data(self) -> None:
        raise NotPossible(f"{self.bootstrap} was not started from here")


class OttlaBroker:
    """`python -m ottla serve` of this checkout, as a child process."""

    name = "Ottla"

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "ottla"
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> float:
        self._folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "ottla", "serve"]
        command += ["--listen", self.bootstrap, "--data", str(self._folder / "data")]
        surroundings = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        # An installed package is compiled once, not by every start.
        surroundings.pop("PYTHONDONTWRITEBYTECODE", None)
        with open(self._folder / "broker.log", "ab") as log:
            started = time.perf_counter()
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=surroundings)
        return wait_answering(self, started, log=self._folder / "broker.log")

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        finally:
            self._process = None

    def wait_removed(self) -> None:
        wait_removed(self._folder / "data")

    def remove_data(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class ApacheKafka:
    """One Apache Kafka node with its own defaults, in a JVM of its own."""

    name = "Apache Kafka"

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder / "kafka"
        self._port = port

    @staticmethod
    def is_available() -> bool:
        """Whether the scripts that start it are beside the checkout, and a Java to run it."""
        return (KAFKA_SCRIPTS / "run-kafka.sh").exists() and shutil.which("java") is not None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int | None:
        try:
            return int((self._folder / "kafka.pid").read_text())
        except (OSError, ValueError):
            return None

    def start(self) -> float:
        self._folder.mkdir(parents=True, exist_ok=True)
        if not (self._folder / "log" / "meta.properties").exists():
            self._script("run-kafka.sh")  # the first run also formats the folder: not start-up time
            self._script("stop-kafka.sh")
        started = time.perf_counter()
        self._script("run-kafka.sh", NOWAIT="1")
        return wait_answering(self, started, log=self._folder / "logs" / "stdout.log")

    def stop(self) -> None:
        self._script("stop-kafka.sh")

    def wait_removed(self) -> None:
        wait_removed(self._folder / "log")

    def remove_data(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _script(self, name: str, **settings: str) -> None:
        surroundings = {**os.environ, "PORT": str(self._port), "DIR": str(self._folder), **settings}
        surroundings["EXTRA"] = f"log.segment.delete.delay.ms={wire.DELETE_DELAY_MS}"
        log = self._folder / "scripts.log"
        with open(log, "ab") as out:  # a pipe would stay open in the broker and never end
            command = [str(KAFKA_SCRIPTS / name)]
            done = subprocess.run(command, env=surroundings, stdout=out, stderr=out)
        if done.returncode:
            raise BrokerFailed(f"{name} failed: {log.read_text()[-600:]}")


def free_port() -> int:
    """A port nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_answering(broker: Broker, started: float, *, log: Path) -> float:
    """Seconds from `started` to the first answer; returns once the broker also knows itself."""
    first_answer = 0.0
    while time.perf_counter() - started < START_SECONDS_MAX:
        try:
            with wire.Connection(broker.bootstrap, timeout_s=5) as connection:
                if not first_answer and wire.offered_apis(connection):
                    first_answer = time.perf_counter() - started
                if first_answer and wire.broker_count(connection):
                    return first_answer
        except (OSError, wire.BrokerAnswer):
            pass
        if broker.pid is None or not Path(f"/proc/{broker.pid}").exists() or _is_zombie(broker.pid):
            raise BrokerFailed(f"{broker.name} died while starting: {_tail(log)}")
        time.sleep(0.002)
    raise BrokerFailed(f"{broker.name} did not answer in {START_SECONDS_MAX:.0f} s: {_tail(log)}")


def wait_removed(data: Path) -> None:
    """Wait until a broker has removed the deleted partitions of its data folder."""
    deadline = time.perf_counter() + REMOVAL_SECONDS_MAX
    while any(data.glob(DELETED_FOLDERS)):
        if time.perf_counter() > deadline:
            raise BrokerFailed(f"{data} still holds deleted partitions")
        time.sleep(0.05)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-600:] if log.exists() else "(it wrote nothing)"
