"""A client's frames in parts: whole and in order, however slowly the socket takes them."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable

import pytest

from ottla.net.frame_writer import PARTS_AT_ONCE, FrameWriter, Part

Use = Callable[[FrameWriter, socket.socket, list[OSError | None]], Awaitable[None]]


def run(use: Use) -> None:
    """Runs `use` with a writer, the socket of the other side, and what the writer told."""

    async def main() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        told: list[OSError | None] = []
        writer = FrameWriter(asyncio.get_running_loop(), ours.fileno(), told.append)
        with ours, theirs:
            async with asyncio.timeout(20):
                await use(writer, theirs, told)
            writer.close()

    asyncio.run(main())


async def received(theirs: socket.socket, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        found += await asyncio.get_running_loop().sock_recv(theirs, 65536)
    return bytes(found)


def test_parts_arrive_joined_and_in_order_through_a_socket_that_takes_little() -> None:
    frames: list[list[Part]] = [
        [b"head", memoryview(bytes([number]) * 700_000), bytearray(b"tail")] for number in range(4)
    ]
    expected = b"".join(part for frame in frames for part in frame)

    async def use(writer: FrameWriter, theirs: socket.socket, told: list[OSError | None]) -> None:
        for frame in frames:
            writer.write(frame)
        assert writer.unsent_bytes > 0, "the socket cannot hold so much"
        assert await received(theirs, len(expected)) == expected
        assert writer.unsent_bytes == 0
        assert told == [None]

    run(use)


def test_who_waits_for_a_frame_to_leave_waits_for_it_and_not_for_those_behind_it() -> None:
    frames = [bytes([number]) * 3_000_000 for number in range(3)]

    async def use(writer: FrameWriter, theirs: socket.socket, told: list[OSError | None]) -> None:
        writer.write([b"small"])
        assert await writer.wait_left()
        waiting = []
        for frame in frames:
            writer.write([frame])
            waiting.append(asyncio.create_task(writer.wait_left()))
            await asyncio.sleep(0)  # the task runs up to where it waits
        assert [task.done() for task in waiting] == [False] * 3
        await received(theirs, 5 + 2 * len(frames[0]))
        assert [await waiting[0], await waiting[1], waiting[2].done()] == [True, True, False]
        writer.close()
        assert not await waiting[2]
        assert not await writer.wait_left()

    run(use)


def test_a_frame_of_more_parts_than_go_at_once_is_sent_whole() -> None:
    parts = [b"%06d" % number for number in range(5 * PARTS_AT_ONCE + 1)]

    async def use(writer: FrameWriter, theirs: socket.socket, told: list[OSError | None]) -> None:
        writer.write(parts)
        assert await received(theirs, 6 * len(parts)) == b"".join(parts)
        assert told == []

    run(use)


def test_a_peer_that_is_gone_is_told_of_once_as_an_error() -> None:
    async def use(writer: FrameWriter, theirs: socket.socket, told: list[OSError | None]) -> None:
        theirs.close()
        writer.write([b"frame"])
        assert [type(each) for each in told] == [BrokenPipeError]

    run(use)


def test_a_closed_writer_lets_go_of_its_parts_and_of_its_descriptor() -> None:
    async def use(writer: FrameWriter, theirs: socket.socket, told: list[OSError | None]) -> None:
        lent = bytearray(5_000_000)
        writer.write([memoryview(lent)])
        descriptor = writer._descriptor
        os.fstat(descriptor)
        writer.close()
        lent.append(0)  # impossible as long as a view of it is held
        with pytest.raises(OSError, match="descriptor"):
            os.fstat(descriptor)
        writer.write([b"late"])
        assert writer.unsent_bytes == 0
        assert told == []

    run(use)
