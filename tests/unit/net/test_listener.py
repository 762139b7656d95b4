"""Who is let in, who is sent away for silence, and how everybody leaves."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ottla.net.listener import SWEEP_SECONDS
from ottla.net.pace import CROWDED_WINDOW_SECONDS, LEAST_BYTES_PER_SECOND, WINDOW_SECONDS
from ottla.protocol.frames import EncodedResponse
from unit.net.running import pass_time, run, turns
from unit.net.served import (
    SMALL_BUFFER,
    DataFile,
    Limits,
    connect,
    listening,
    receive,
    wait_until,
    with_regions,
)
from unit.net.wire_end import Answered, reply, request


def test_no_more_clients_are_let_in_than_there_may_be() -> None:
    async def scenario() -> None:
        async with listening(reply, Limits(connections=2)) as listener:
            with await connect(listener) as first, await connect(listener):
                await wait_until(lambda: listener.connection_count == 2)
                with await connect(listener) as third:
                    assert await ended(third)
                first.close()
                await wait_until(lambda: listener.connection_count == 1)
                with await connect(listener) as fourth:
                    await asyncio.get_running_loop().sock_sendall(fourth, request(b"a request"))
                    assert await receive(fourth, 13) == request(b"a request")

    run(scenario())


def test_one_address_cannot_take_all_places() -> None:
    async def scenario() -> None:
        async with listening(reply, Limits(per_ip=1)) as listener:
            with await connect(listener) as first:
                await wait_until(lambda: listener.connection_count == 1)
                with await connect(listener) as second:
                    assert await ended(second)
                first.close()
                await wait_until(lambda: listener.connection_count == 0)
                with await connect(listener):
                    await wait_until(lambda: listener.connection_count == 1)

    run(scenario())


async def ended(client: object) -> bool:
    """Whether the other side has closed the connection, by and by."""
    try:
        return await receive(client, 1) == b""  # type: ignore[arg-type]
    except ConnectionResetError:
        return True


def test_a_silent_client_is_sent_away_and_one_that_is_owed_a_reply_is_not() -> None:
    async def scenario() -> None:
        owed: asyncio.Future[EncodedResponse | None] = asyncio.get_running_loop().create_future()
        async with listening(lambda _name: owed, Limits(idle_ms=60_000)) as listener:
            with await connect(listener) as silent, await connect(listener) as waiting:
                await asyncio.get_running_loop().sock_sendall(waiting, request(b"long poll"))
                await wait_until(lambda: listener.connection_count == 2)
                await pass_time(SWEEP_SECONDS)  # It was heard from until now.
                await pass_time(61)
                assert await ended(silent)
                owed.set_result(reply(b"late"))
                assert await receive(waiting, 8) == request(b"late")

    run(scenario())


def test_a_client_that_is_heard_from_now_and_then_may_stay() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with listening(reply, Limits(idle_ms=60_000)) as listener:
            with await connect(listener) as client:
                for _ in range(3):
                    await loop.sock_sendall(client, request(b"a request"))
                    assert await receive(client, 13) == request(b"a request")
                    await pass_time(SWEEP_SECONDS)
                    await pass_time(55)
                assert listener.connection_count == 1

    run(scenario())


def test_a_client_that_stops_in_the_middle_of_a_request_is_cut_off() -> None:
    async def scenario() -> None:
        async with listening(reply, Limits(idle_ms=3_600_000)) as listener:
            with await connect(listener) as stalled, await connect(listener) as silent:
                loop = asyncio.get_running_loop()
                await loop.sock_sendall(stalled, request(b"a request")[:7])
                await loop.sock_sendall(silent, request(b"a request"))
                await receive(silent, 13)
                await pass_time(SWEEP_SECONDS)
                await pass_time(WINDOW_SECONDS + 1)
                assert await ended(stalled)
                await wait_until(lambda: listener.connection_count == 1)

    run(scenario())


def test_a_client_that_sends_a_request_byte_by_byte_is_cut_off() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with listening(reply, Limits(idle_ms=3_600_000)) as listener:
            with await connect(listener) as slow:
                for byte in request(b"x" * 100)[:20]:
                    await loop.sock_sendall(slow, bytes([byte]))
                    await pass_time(SWEEP_SECONDS)
                    if not listener.connection_count:
                        break
                assert await ended(slow)

    run(scenario())


def test_a_client_that_sends_a_long_request_steadily_may_finish() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        whole = request(b"x" * 1_000_000)
        async with listening(lambda name: reply(name[:9]), Limits(idle_ms=3_600_000)) as listener:
            with await connect(listener) as steady:
                step = int(LEAST_BYTES_PER_SECOND * SWEEP_SECONDS * 1.5)
                for start in range(0, len(whole), step):
                    await loop.sock_sendall(steady, whole[start : start + step])
                    await turns(20)
                    await pass_time(SWEEP_SECONDS)
                assert await receive(steady, 13) == request(b"x" * 9)

    run(scenario())


def test_who_sits_on_memory_that_others_wait_for_is_cut_off_soon() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        begun = request(b"x" * 300_000)[:150_000]
        limits = Limits(idle_ms=3_600_000, receive_bytes=400_000)
        async with listening(lambda name: reply(name[:9]), limits) as listener:
            with await connect(listener) as sits, await connect(listener) as waits:
                await loop.sock_sendall(sits, begun)
                await wait_until(lambda: listener.received_bytes > 0)
                await loop.sock_sendall(waits, request(b"y" * 300_000))
                for _ in range(2 + int(CROWDED_WINDOW_SECONDS / SWEEP_SECONDS)):
                    await pass_time(SWEEP_SECONDS)
                    await turns(20)
                assert await ended(sits)
                assert await receive(waits, 13) == request(b"y" * 9)

    run(scenario())


def test_closing_waits_for_replies_that_are_owed() -> None:
    async def scenario() -> None:
        owed: asyncio.Future[EncodedResponse | None] = asyncio.get_running_loop().create_future()
        asked = asyncio.Event()

        def answer(_name: bytes) -> Answered:
            asked.set()
            return owed

        async with listening(answer) as listener:
            with await connect(listener) as client:
                await asyncio.get_running_loop().sock_sendall(client, request(b"a request"))
                await asked.wait()
                listener.drain()
                closing = asyncio.ensure_future(listener.close(grace_seconds=20))
                owed.set_result(reply(b"the last"))
                assert await receive(client, 100) == request(b"the last")
                await closing

    run(scenario())


def test_closing_cuts_off_who_does_not_read_its_replies_in_time(tmp_path: Path) -> None:
    file = DataFile(tmp_path / "segment", 1 << 24)

    async def scenario() -> None:
        answered = asyncio.Event()

        def answer(_name: bytes) -> Answered:
            answered.set()
            return with_regions(file.region(0, 1 << 24))

        async with listening(answer) as listener:
            with await connect(listener, buffer_bytes=SMALL_BUFFER) as client:
                await asyncio.get_running_loop().sock_sendall(client, request(b"the file"))
                await answered.wait()
                listener.drain()
                closing = asyncio.ensure_future(listener.close(grace_seconds=5))
                await pass_time(4)
                assert listener.connection_count == 1
                await pass_time(2)
                await closing
                assert listener.connection_count == 0

    run(scenario())
    file.close()


def test_nobody_is_let_in_any_more_while_the_broker_stops() -> None:
    async def scenario() -> None:
        async with listening(reply) as listener:
            client = await connect(listener)
            # The kernel has accepted it, and the loop may hear of it only after the listener shut.
            listener.drain()
            with client:
                assert await ended(client)
            await listener.close(grace_seconds=20)
            assert listener.connection_count == 0

    run(scenario())
