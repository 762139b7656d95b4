"""`ottla doctor`: what it finds in good and in bad places."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def a_server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that is not a broker, on a port of its own."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                try:
                    answer(connection)
                except OSError:
                    pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(timeout=10)


def states(ran) -> dict[str, str]:
    return {row["about"]: row["state"] for row in json.loads(ran.out)}


def test_a_healthy_broker_is_well(ottla, bootstrap: str) -> None:
    ran = ottla("doctor", bootstrap, "--json")
    found = states(ran)
    assert ran.code == 0
    assert "bad" not in found.values()
    assert {"name", "port", "protocol", "cluster", "controller", "partitions", "answers"} <= set(
        found
    )


def test_the_findings_are_readable(ottla, bootstrap: str) -> None:
    ran = ottla("doctor", bootstrap)
    assert f"port: {bootstrap} accepts connections" in ran.out


def test_a_name_that_does_not_exist_is_found(ottla) -> None:
    ran = ottla("doctor", "no-such-host.invalid:9092", "--json")
    assert (ran.code, states(ran)) == (3, {"name": "bad"})


def test_a_port_nobody_listens_on_is_found_and_the_fix_said(ottla) -> None:
    ran = ottla("doctor", "127.0.0.1:1")
    assert ran.code == 3
    assert "nothing listens there" in ran.out
    assert "fix: " in ran.out


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "web server"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "TLS"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "Kafka listener"),
    ],
)
def test_what_is_not_a_broker_is_recognised(ottla, reply: bytes, words: str) -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(reply)
        connection.recv(1000)

    with a_server(answer) as address:
        ran = ottla("doctor", address)
        assert ran.code == 3
        assert words in ran.out
        listed = ottla("topics", "list", "-b", address)
        assert (listed.code, "ottla doctor" in listed.err) == (3, True)


def test_a_server_that_says_nothing_is_told_from_a_port_nobody_listens_on(ottla) -> None:
    def wait_in_silence(connection: socket.socket) -> None:
        while connection.recv(1000):
            pass

    with a_server(wait_in_silence) as address:
        ran = ottla("doctor", address, "--timeout", "0.3")
        assert ran.code == 3
        assert "accepts connections" in ran.out
        assert "start the broker" not in ran.out


def test_a_server_that_only_closes_is_found(ottla) -> None:
    with a_server(lambda connection: None) as address:
        ran = ottla("doctor", address, "--json")
        assert (ran.code, states(ran)["protocol"]) == (3, "bad")
