"""One connection: pipelining, frames in any pieces, and what happens when it breaks."""

import asyncio
import struct
from collections.abc import Awaitable, Callable

import pytest

from ottla.net import client_connection
from ottla.net.client_connection import (
    SCRATCH_BYTES,
    CannotConnect,
    ClientConnection,
    ConnectionFailed,
    ConnectionLost,
    NotABroker,
    ResponseTimedOut,
    SendingTimedOut,
)

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def frame(correlation_id: int, body: bytes = b"") -> bytes:
    return struct.pack(">ii", 4 + len(body), correlation_id) + body


def run(serve: Serve, use: Callable[[ClientConnection], Awaitable[None]]) -> None:
    """Runs `use` with a connection to a server that does `serve`."""

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with await ClientConnection.open("127.0.0.1", port, timeout_s=5) as connection:
            await use(connection)
        server.close()

    asyncio.run(main())


def answering(*answers: bytes, after: int = 1) -> Serve:
    """Waits for that many requests, then sends the pieces, each in a packet of its own."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(after):
            size = int.from_bytes(await reader.readexactly(4), "big")
            await reader.readexactly(size)
        for answer in answers:
            writer.write(answer)
            await writer.drain()
            await asyncio.sleep(0)
        await reader.read()
        writer.close()

    return serve


def test_answers_find_their_requests_in_a_pipeline() -> None:
    async def use(connection: ClientConnection) -> None:
        ids = [connection.next_correlation_id() for _ in range(3)]
        answers = await asyncio.gather(
            *(connection.request(frame(number), number, timeout_s=5) for number in ids)
        )
        assert [bytes(answer[4:]) for answer in answers] == [b"zero", b"one", b"two"]

    run(answering(frame(0, b"zero") + frame(1, b"one"), frame(2, b"two"), after=3), use)


@pytest.mark.parametrize("size", [0, 1, 1000, SCRATCH_BYTES - 8, SCRATCH_BYTES, 3_000_000])
@pytest.mark.parametrize("cut", [1, 3, 7, 4096])
def test_a_frame_may_come_in_any_pieces(size: int, cut: int) -> None:
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    whole = frame(0, body) + frame(1, b"next")
    pieces = [whole[:cut], whole[cut : cut + 5], whole[cut + 5 :]]

    async def use(connection: ClientConnection) -> None:
        first, second = await asyncio.gather(
            connection.request(frame(0), 0, timeout_s=5),
            connection.request(frame(1), 1, timeout_s=5),
        )
        assert bytes(first[4:]) == body
        assert bytes(second[4:]) == b"next"

    run(answering(*pieces, after=2), use)


def test_an_answer_stays_intact_while_later_ones_arrive() -> None:
    async def use(connection: ClientConnection) -> None:
        first = await connection.request(frame(0), 0, timeout_s=5)
        second = await connection.request(frame(1), 1, timeout_s=5)
        assert (bytes(first[4:]), bytes(second[4:])) == (b"a" * 100, b"b" * 100)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number, letter in ((0, b"a"), (1, b"b")):
            await reader.readexactly(8)
            writer.write(frame(number, letter * 100))
        await reader.read()
        writer.close()

    run(serve, use)


def test_a_closed_connection_fails_every_request_in_flight_and_all_later_ones() -> None:
    async def use(connection: ClientConnection) -> None:
        answers = await asyncio.gather(
            *(connection.request(frame(number), number, timeout_s=5) for number in range(3)),
            return_exceptions=True,
        )
        assert [type(answer) for answer in answers] == [ConnectionLost] * 3
        assert not connection.is_open
        with pytest.raises(ConnectionLost):
            await connection.request(frame(3), 3, timeout_s=5)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)
        writer.close()

    run(serve, use)


def test_a_late_answer_is_a_timeout_and_ends_the_connection() -> None:
    async def use(connection: ClientConnection) -> None:
        with pytest.raises(ResponseTimedOut):
            await connection.request(frame(0), 0, timeout_s=0.01)
        assert not connection.is_open

    run(answering(after=2), use)


@pytest.mark.parametrize(
    ("answer", "guess"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP server"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "TLS"),
        (b"\xff\xff\xff\xff", "cannot be read"),
        (frame(77, b"not what was asked"), "cannot be read"),
    ],
)
def test_what_is_not_kafkas_protocol_is_recognised(answer: bytes, guess: str) -> None:
    async def use(connection: ClientConnection) -> None:
        with pytest.raises(NotABroker, match=guess):
            await connection.request(frame(0), 0, timeout_s=5)

    run(answering(answer), use)


def test_a_port_nobody_listens_on_is_a_typed_error() -> None:
    async def main() -> None:
        server = await asyncio.start_server(answering(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        with pytest.raises(CannotConnect, match="nothing listens there"):
            await ClientConnection.open("127.0.0.1", port, timeout_s=5)

    asyncio.run(main())


def test_a_name_that_does_not_exist_is_a_typed_error() -> None:
    async def main() -> None:
        with pytest.raises(CannotConnect):
            await ClientConnection.open("no-such-host.invalid", 9092, timeout_s=5)

    asyncio.run(main())


def test_closing_fails_who_still_waits() -> None:
    async def use(connection: ClientConnection) -> None:
        waiting = asyncio.create_task(connection.request(frame(0), 0, timeout_s=5))
        await asyncio.sleep(0)  # the task runs up to where it waits
        assert connection.in_flight == 1
        connection.close()
        with pytest.raises(ConnectionFailed):
            await waiting

    run(answering(after=2), use)


@pytest.fixture(params=[True, False], ids=["in parts", "through the transport"])
def writes_parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_connection, "CAN_WRITE_PARTS", request.param)


MORE_THAN_SOCKETS_HOLD = 32 * 1024 * 1024


@pytest.mark.usefixtures("writes_parts")
def test_what_was_sent_without_an_answer_arrives_though_the_connection_is_closed_at_once() -> None:
    may_read, has_all = asyncio.Event(), asyncio.Event()
    sent = [frame(number, bytes([number]) * MORE_THAN_SOCKETS_HOLD) for number in range(2)]
    found = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await may_read.wait()
        while data := await reader.read(1_000_000):
            found.extend(data)
        has_all.set()
        writer.close()

    async def use(connection: ClientConnection) -> None:
        sending = [asyncio.create_task(connection.send(each, timeout_s=30)) for each in sent]
        done, _ = await asyncio.wait(sending, timeout=0.05)
        assert not done, "nobody has read it yet"
        may_read.set()
        await asyncio.gather(*sending)
        connection.close()
        await has_all.wait()
        assert found == b"".join(sent)

    run(serve, use)


@pytest.mark.usefixtures("writes_parts")
def test_who_does_not_take_what_is_sent_is_given_up() -> None:
    is_over = asyncio.Event()

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await is_over.wait()
        writer.close()

    async def use(connection: ClientConnection) -> None:
        with pytest.raises(SendingTimedOut):
            await connection.send(frame(0, bytes(MORE_THAN_SOCKETS_HOLD)), timeout_s=0.05)
        assert not connection.is_open
        with pytest.raises(SendingTimedOut):
            await connection.send(frame(1), timeout_s=5)
        is_over.set()

    run(serve, use)
