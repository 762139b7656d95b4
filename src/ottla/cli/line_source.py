"""Lines from a file or standard input, as they come, without blocking the event loop.

A daemon thread reads: it may be waiting for a person's next line when the program ends, and must
not keep it from ending. At most a few chunks wait in memory.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from typing import Final

from ottla.errors import InvalidRecord

CHUNK_BYTES: Final = 1024 * 1024
CHUNKS_WAITING_MAX: Final = 4
LINE_BYTES_MAX: Final = 64 * 1024 * 1024


async def read_lines(descriptor: int) -> AsyncIterator[list[bytes]]:
    """The lines without their ends, in groups: all that came in one piece."""
    begun: list[bytes] = []  # the pieces of a line whose end has not come, joined only once
    begun_bytes = 0
    async for chunk in _read_chunks(descriptor):
        first, *others = chunk.split(b"\n")
        begun.append(first)
        begun_bytes += len(first)
        if begun_bytes > LINE_BYTES_MAX:
            raise InvalidRecord(f"a line of more than {LINE_BYTES_MAX} bytes")
        if others:
            lines = [b"".join(begun), *others[:-1]]
            begun, begun_bytes = [others[-1]], len(others[-1])
            yield [line.removesuffix(b"\r") for line in lines]
    if begun_bytes:
        yield [b"".join(begun)]


async def _read_chunks(descriptor: int) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[bytes | OSError] = asyncio.Queue()
    room = threading.Semaphore(CHUNKS_WAITING_MAX)

    def read() -> None:
        is_over = False
        while not is_over:
            room.acquire()
            chunk: bytes | OSError
            try:
                chunk = os.read(descriptor, CHUNK_BYTES)
            except OSError as error:
                chunk = error
            is_over = not isinstance(chunk, bytes) or not chunk
            try:
                loop.call_soon_threadsafe(arrived.put_nowait, chunk)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return

    threading.Thread(target=read, name="line-source", daemon=True).start()
    while True:
        chunk = await arrived.get()
        if isinstance(chunk, OSError):
            raise chunk
        if not chunk:
            return
        room.release()
        yield chunk
