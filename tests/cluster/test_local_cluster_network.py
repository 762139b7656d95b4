"""The network of a local cluster: who may reach whom, when, and how late."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest

from ottla.testing import network_source
from ottla.testing.network import CLIENTS, ZOOKEEPER, Network
from support.eventually import eventually

pytestmark = pytest.mark.skipif(
    not network_source.is_available(), reason="this system does not tell who opened a connection"
)
SECONDS_MAX = 10.0
SILENCE_SECONDS = 0.3
CALLER = """
import socket, sys
for line in sys.stdin:
    port, seconds = line.split()
    with socket.create_connection(("127.0.0.1", int(port)), 10) as one:
        one.settimeout(float(seconds))
        try:
            one.sendall(b"hello")
            print(one.recv(100).decode() or "closed", flush=True)
        except TimeoutError:
            print("silence", flush=True)
        except OSError:
            print("closed", flush=True)
"""


class Echo:
    """Answers each connection with what it sends, until closed."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.received = bytearray()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                one, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(one,), daemon=True).start()

    def _serve(self, one: socket.socket) -> None:
        with one:
            while data := _received(one):
                self.received += data
                one.sendall(data)


def _received(one: socket.socket) -> bytes:
    try:
        return one.recv(1 << 16)
    except OSError:
        return b""


@dataclass(frozen=True)
class Place:
    """A network with one echoing node, broker 1, and its address."""

    network: Network
    echo: Echo
    port: int

    def connect(self) -> socket.socket:
        one = socket.create_connection(("127.0.0.1", self.port), SECONDS_MAX)
        one.settimeout(SECONDS_MAX)
        return one


@pytest.fixture
def place() -> Iterator[Place]:
    network, echo = Network(), Echo()
    network.start()
    address = network.address_of(1, echo.port)
    yield Place(network, echo, int(address.rsplit(":", 1)[1]))
    network.close()
    echo.close()


@pytest.fixture
def broker_0(place: Place) -> Iterator[Callable[..., str]]:
    """A process that counts as broker 0: calls broker 1 and tells what came back in time."""
    with subprocess.Popen(
        [sys.executable, "-c", CALLER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        place.network.know(0, process.pid)

        def call(seconds: float = SECONDS_MAX) -> str:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{place.port} {seconds}\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        yield call
        assert process.stdin is not None
        process.stdin.close()
        process.wait(SECONDS_MAX)


def hears(one: socket.socket, data: bytes) -> bool:
    one.sendall(data)
    return _exactly(one, len(data)) == data


def _exactly(one: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count and (data := one.recv(count - len(parts))):
        parts += data
    return bytes(parts)


def is_silent(one: socket.socket) -> bool:
    one.settimeout(SILENCE_SECONDS)
    try:
        one.recv(1)
    except TimeoutError:
        return True
    finally:
        one.settimeout(SECONDS_MAX)
    return False


def test_bytes_pass_both_ways_however_many(place: Place) -> None:
    data = bytes(range(256)) * 20_000
    with place.connect() as one:
        threading.Thread(target=one.sendall, args=(data,), daemon=True).start()
        assert _exactly(one, len(data)) == data


def test_a_partition_holds_back_both_ways_and_healing_delivers(place: Place) -> None:
    with place.connect() as one:
        assert hears(one, b"before")
        place.network.partition([[CLIENTS], [0, 1]])
        one.sendall(b"during")
        assert is_silent(one)
        assert place.echo.received == b"before"
        place.network.heal()
        assert _exactly(one, 6) == b"during"


def test_one_direction_can_be_held_alone(place: Place) -> None:
    with place.connect() as one:
        assert hears(one, b"a")
        place.network.hold(1, CLIENTS)
        one.sendall(b"b")
        eventually(lambda: place.echo.received == b"ab", "the request")
        assert is_silent(one)
        place.network.heal()
        assert _exactly(one, 1) == b"b"


def test_a_connection_made_during_a_partition_seems_open_and_works_after_it(place: Place) -> None:
    place.network.hold(CLIENTS, 1)
    with place.connect() as one:
        one.sendall(b"x")
        assert is_silent(one)
        place.network.heal()
        assert _exactly(one, 1) == b"x"


def test_cutting_breaks_connections_and_refuses_new_ones_until_healed(place: Place) -> None:
    with place.connect() as one:
        assert hears(one, b"a")
        place.network.cut(CLIENTS, 1)
        assert _received(one) == b""
    with place.connect() as refused:
        assert _received(refused) == b""
    place.network.heal()
    with place.connect() as again:
        assert hears(again, b"b")


def test_delayed_bytes_come_late_and_in_order(place: Place) -> None:
    place.network.delay(CLIENTS, 1, 0.2)
    with place.connect() as one:
        started = time.monotonic()
        for number in range(10):
            one.sendall(b"%d" % number)
        assert _exactly(one, 10) == b"0123456789"
        assert time.monotonic() - started >= 0.2  # a lower bound: load only makes it later


def test_brokers_are_told_from_clients_by_their_process(
    place: Place, broker_0: Callable[..., str]
) -> None:
    assert broker_0() == "hello"
    place.network.partition([[0], [1]])
    assert broker_0(SILENCE_SECONDS) == "silence"
    with place.connect() as client:
        assert hears(client, b"a client is not concerned")
    place.network.heal()
    place.network.cut(CLIENTS, 1)
    assert broker_0() == "hello"
    place.network.cut(0, 1)
    assert broker_0() == "closed"


def test_an_address_for_one_caller_needs_no_look_at_its_process(place: Place) -> None:
    address = place.network.address_of(ZOOKEEPER, place.echo.port, caller=2)
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), SECONDS_MAX) as one:
        assert hears(one, b"a")
        place.network.cut(2, ZOOKEEPER)
        assert _received(one) == b""


def test_the_end_of_a_stream_is_seen_after_its_last_bytes(place: Place) -> None:
    with place.connect() as one:
        one.sendall(b"last words")
        assert _exactly(one, 10) == b"last words"
        one.shutdown(socket.SHUT_WR)
        assert _received(one) == b""


def test_nobody_behind_an_address_is_a_closed_connection(place: Place) -> None:
    place.echo.close()
    with place.connect() as one:
        assert _received(one) == b""
