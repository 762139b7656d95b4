"""The demonstration's broker: `ottla serve` in a process of its own, where a port is free."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ottla.cli.message import say_error
from ottla.clients.address import DEFAULT_PORT, Address, parse_address

PORTS_TRIED: Final = 20
STOP_TIMEOUT_S: Final = 15.0
READY: Final = " ready on "


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """The broker's process, where it listens and where its data is."""

    process: subprocess.Popen[str]
    address: Address
    data: Path


@contextmanager
def started_broker(place: Address, data: Path) -> Iterator[RunningBroker | None]:
    """The broker, stopped at the end; None if it does not start.

    Ctrl-C does not reach it: who uses it ends first.
    """
    command = [sys.executable, "-m", "ottla", "serve", "--listen", str(place)]
    command += ["--data", str(data), "--log-level", "warning"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if READY not in line:
            process.wait()
            say_error("the broker did not start.", "see above for why")
            yield None
            return
        address = parse_address(line.split(READY, 1)[1].split(",")[0])
        yield RunningBroker(process, address, data)
    finally:
        _stop(process)


def free_address() -> Address:
    """The first port from Kafka's own on that nobody listens on; any free one if all are taken."""
    for port in range(DEFAULT_PORT, DEFAULT_PORT + PORTS_TRIED):
        with socket.socket() as candidate:
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                candidate.bind(("127.0.0.1", port))
            except OSError:
                continue
            return Address("127.0.0.1", port)
    return Address("127.0.0.1", 0)


def default_data() -> Path:
    """Where the data is unless somebody says otherwise."""
    share = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(share) / "ottla" / "demo"


def _stop(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_S)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()
            process.wait()
    if process.stdout is not None:
        process.stdout.close()
