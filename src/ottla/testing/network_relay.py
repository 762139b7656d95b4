"""One connection through the local network: bytes of both directions, held or late as ordered.

TCP loses nothing in the middle of a stream: what a broken network does to it is to keep bytes back,
until it heals or somebody gives up. So that is what is done here. The end of a stream is held back
like its bytes: behind a broken network nobody learns that the other side has closed.
"""

from __future__ import annotations

import asyncio
from typing import Final

CHUNK_BYTES_MAX: Final = 256 * 1024
CHUNKS_UNDER_WAY_MAX: Final = 64
"""For each direction of a connection; what is more stays in the sender's socket."""


class Way:
    """From one node to another: whether bytes get through, and how late."""

    __slots__ = ("delay_seconds", "flowing")

    def __init__(self) -> None:
        self.flowing = asyncio.Event()
        self.flowing.set()
        self.delay_seconds = 0.0


class Relay:
    """A connection from a caller to a node, carried over the two ways between them."""

    def __init__(
        self,
        caller: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        target: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self._caller = caller
        self._target = target

    async def run(self, there: Way, back: Way) -> None:
        """Carries until either side ends."""
        async with asyncio.TaskGroup() as pumps:
            requests = pumps.create_task(_pump(self._caller[0], self._target[1], there))
            answers = pumps.create_task(_pump(self._target[0], self._caller[1], back))
            await asyncio.wait((requests, answers), return_when=asyncio.FIRST_COMPLETED)
            requests.cancel()
            answers.cancel()
        for _, writer in (self._caller, self._target):
            writer.close()  # what was delivered last still goes out

    def abort(self) -> None:
        """Breaks both sides at once."""
        for _, writer in (self._caller, self._target):
            writer.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Way) -> None:
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(CHUNKS_UNDER_WAY_MAX)
    taking = asyncio.create_task(_take(reader, under_way, way))
    try:
        await _deliver(under_way, writer, way)
    except ConnectionError:
        pass  # The receiver has gone; so will the connection.
    finally:
        taking.cancel()


async def _take(
    reader: asyncio.StreamReader, under_way: asyncio.Queue[tuple[float, bytes]], way: Way
) -> None:
    now = asyncio.get_running_loop().time
    data = b"first"
    while data:
        try:
            data = await reader.read(CHUNK_BYTES_MAX)
        except ConnectionError:
            data = b""
        await under_way.put((now() + way.delay_seconds, data))


async def _deliver(
    under_way: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter, way: Way
) -> None:
    """Writes each piece when it is due; returns at the end of the stream."""
    now = asyncio.get_running_loop().time
    while True:
        due, data = await under_way.get()
        if (early := due - now()) > 0:
            await asyncio.sleep(early)
        await way.flowing.wait()
        if not data:
            return
        writer.write(data)
        await writer.drain()
