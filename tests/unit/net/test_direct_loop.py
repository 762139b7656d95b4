"""Connections that are served while the loop polls behave as asyncio's own do."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ottla.net.direct_loop import HAS_DIRECT, served_directly
from ottla.net.direct_transport import DirectTransport
from unit.net.running import run, turns
from unit.net.served import SMALL_BUFFER, receive, wait_until

pytestmark = pytest.mark.skipif(not HAS_DIRECT, reason="the system has no epoll")

MANY = 1 << 24


class Server(asyncio.BufferedProtocol):
    """Keeps what it hears, in the order it hears it."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.told: list[object] = []
        self.buffer = bytearray(1000)
        self.fails: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: DirectTransport = transport  # type: ignore[assignment]
        self.told.append("made")

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self.buffer[:nbytes]
        if self.fails is not None:
            raise self.fails

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.told.append(("lost", type(exc)))


@asynccontextmanager
async def connected(buffer_bytes: int | None = None) -> AsyncIterator[tuple[Server, socket.socket]]:
    loop = asyncio.get_running_loop()
    servers: list[Server] = []

    def factory() -> Server:
        servers.append(Server())
        return servers[-1]

    listening = await loop.create_server(served_directly(loop, factory), "127.0.0.1", 0)
    with socket.socket() as client:
        if buffer_bytes is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        client.setblocking(False)
        await loop.sock_connect(client, listening.sockets[0].getsockname())
        await wait_until(lambda: bool(servers) and bool(servers[0].told))
        assert isinstance(servers[0].transport, DirectTransport)
        yield servers[0], client
        servers[0].transport.abort()
        await turns()
    listening.close()


def test_what_a_client_sends_comes_in_order_and_its_end_is_heard_of_last() -> None:
    async def scenario() -> None:
        async with connected() as (server, client):
            sent = bytes(range(256)) * 100
            await asyncio.get_running_loop().sock_sendall(client, sent)
            client.shutdown(socket.SHUT_WR)
            await wait_until(lambda: len(server.told) == 2)
            assert server.received == sent
            assert server.told == ["made", ("lost", type(None))]
            assert await receive(client, 1) == b"", "the server's end is closed too"

    run(scenario())


def test_a_slow_reader_pauses_the_server_and_gets_every_byte() -> None:
    async def scenario() -> None:
        async with connected(SMALL_BUFFER) as (server, client):
            server.transport.write(b"a" * MANY)
            server.transport.write(b"b" * 10)
            assert server.told == ["made", "pause"]
            assert await receive(client, MANY + 10) == b"a" * MANY + b"b" * 10
            await wait_until(lambda: server.told[-1] == "resume")
            server.transport.write(b"more")
            assert await receive(client, 4) == b"more"

    run(scenario())


def test_closing_lets_what_was_written_leave_first() -> None:
    async def scenario() -> None:
        async with connected(SMALL_BUFFER) as (server, client):
            server.transport.write(b"a" * MANY)
            server.transport.close()
            assert server.transport.is_closing()
            assert await receive(client, MANY + 1) == b"a" * MANY
            await wait_until(lambda: server.told[-1] == ("lost", type(None)))
            assert "resume" not in server.told, "nothing more is to be written"

    run(scenario())


def test_while_reading_rests_nothing_comes_and_nothing_is_lost() -> None:
    async def scenario() -> None:
        async with connected() as (server, client):
            server.transport.pause_reading()
            client.send(b"early")
            client.close()
            await turns(50)
            assert not server.received
            assert server.told == ["made"], "a client's end is no news while nobody reads"
            server.transport.resume_reading()
            await wait_until(lambda: len(server.told) == 2)
            assert server.received == b"early"

    run(scenario())


def test_a_reset_ends_the_connection_with_its_error() -> None:
    async def scenario() -> None:
        async with connected() as (server, client):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.close()
            await wait_until(lambda: len(server.told) == 2)
            assert server.told[-1] == ("lost", ConnectionResetError)

    run(scenario())


def test_a_server_that_fails_loses_its_connection_and_the_loop_hears_why() -> None:
    async def scenario() -> None:
        heard: list[object] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: heard.append(context["exception"]))
        async with connected() as (server, client), connected() as (other, another):
            server.fails = ValueError("a bug")
            client.send(b"anything")
            another.send(b"anything else")
            await wait_until(lambda: other.received == b"anything else")
            await wait_until(lambda: server.told[-1] == ("lost", ValueError))
            assert heard == [server.fails]

    run(scenario())


def test_a_client_for_whom_no_descriptor_is_left_is_sent_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dup(_socket: object) -> None:
        raise OSError(24, "too many open files")

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(served_directly(loop, Server), "127.0.0.1", 0)
        with socket.socket() as client:
            client.setblocking(False)
            monkeypatch.setattr(asyncio.trsock.TransportSocket, "dup", dup)
            await loop.sock_connect(client, listening.sockets[0].getsockname())
            assert await receive(client, 1) == b""
        listening.close()

    run(scenario())


def test_other_protocols_and_asyncio_itself_go_their_usual_way() -> None:
    class Echo(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            assert isinstance(self.transport, asyncio.Transport)
            self.transport.write(data)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Echo, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"to and fro")
        assert await reader.readexactly(10) == b"to and fro"
        writer.close()
        server.close()
        later = loop.create_future()
        loop.call_later(0.001, later.set_result, None)
        await later
        assert await loop.run_in_executor(None, lambda: 7) == 7

    run(scenario())
