"""What is sent between programs of one machine is not paced."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from ottla.net.client_connection import CannotConnect, ClientConnection
from ottla.net.own_machine import UNPACED, is_own_machine, send_unpaced
from unit.net.running import run
from unit.net.served import connect, listening, wait_until
from unit.net.wire_end import reply

TCP_CONGESTION = getattr(socket, "TCP_CONGESTION", None)
knows_congestion_control = pytest.mark.skipif(
    TCP_CONGESTION is None, reason="the system does not let a program choose"
)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1"])
def test_only_this_machine_reaches_its_own_addresses(host: str) -> None:
    assert is_own_machine(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "", "localhost"])
def test_others_may_reach_any_other_address(host: str) -> None:
    assert not is_own_machine(host)


def how_it_sends(of: socket.socket) -> bytes:
    assert TCP_CONGESTION is not None
    return of.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b"\0")


@pytest.fixture
def bound() -> Iterator[socket.socket]:
    with socket.socket() as one:
        yield one


@knows_congestion_control
def test_a_socket_that_others_reach_sends_as_the_machine_is_set_to(bound: socket.socket) -> None:
    before = how_it_sends(bound)
    bound.bind(("0.0.0.0", 0))
    send_unpaced(bound)
    assert how_it_sends(bound) == before


@knows_congestion_control
def test_connections_have_it_from_the_socket_that_listens(bound: socket.socket) -> None:
    bound.bind(("127.0.0.1", 0))
    send_unpaced(bound)
    bound.listen()
    with socket.create_connection(bound.getsockname(), timeout=10):
        accepted, _ = bound.accept()
        with accepted:
            assert how_it_sends(accepted) == UNPACED


@knows_congestion_control
def test_a_listener_does_not_pace_its_clients_on_this_machine() -> None:
    async def scenario() -> None:
        async with listening(reply) as listener:
            with await connect(listener):
                await wait_until(lambda: listener.connection_count == 1)
                (connection,) = listener._connections
                transport = connection._transport
                assert transport is not None
                assert how_it_sends(transport.get_extra_info("socket")) == UNPACED

    run(scenario())


@knows_congestion_control
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_client_does_not_pace_what_it_sends_to_its_own_machine(host: str) -> None:
    async def scenario() -> None:
        async with listening(reply) as listener:
            opened = await ClientConnection.open(host, listener.address.port, timeout_s=10)
            async with opened:
                assert opened._transport is not None
                assert how_it_sends(opened._transport.get_extra_info("socket")) == UNPACED

    run(scenario())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_client_hears_that_nobody_listens_on_its_own_machine(
    host: str, bound: socket.socket
) -> None:
    bound.bind(("127.0.0.1", 0))
    port = bound.getsockname()[1]

    async def scenario() -> None:
        with pytest.raises(CannotConnect, match="nothing listens there"):
            await ClientConnection.open(host, port, timeout_s=10)

    run(scenario())
