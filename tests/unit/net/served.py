"""A listener on this machine whose answers a test gives, and clients that read as they like."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from struct import pack

from ottla.model.file_region import FileRegion
from ottla.model.ids import Position
from ottla.net.listener import Address, Listener, ListenerLimits
from ottla.net.server_connection import ConnectionLimits, Peer
from ottla.protocol.frames import EncodedResponse
from unit.net.wire_end import Answered

SMALL_BUFFER = 4096


@dataclass(frozen=True)
class Limits:
    """What tests change of a listener's limits."""

    connections: int = 100
    per_ip: int = 100
    idle_ms: int = 600_000
    receive_bytes: int = 1 << 24

    def given(self) -> ListenerLimits:
        return ListenerLimits(
            ConnectionLimits(1 << 20, 100),
            self.connections,
            self.per_ip,
            self.idle_ms,
            self.receive_bytes,
        )


DEFAULT_LIMITS = Limits()


@asynccontextmanager
async def listening(
    answer: Callable[[bytes], Answered], limits: Limits = DEFAULT_LIMITS
) -> AsyncIterator[Listener]:
    def answer_frame(frame: memoryview, _peer: Peer) -> Answered:
        return answer(bytes(frame))

    listener = Listener(Address("127.0.0.1", 0), answer_frame, limits.given())
    await listener.open()
    try:
        yield listener
    finally:
        listener.drain()
        await listener.close(grace_seconds=0.0)


async def connect(listener: Listener, *, buffer_bytes: int | None = None) -> socket.socket:
    """A client's socket; with a small buffer it takes little before it is read."""
    client = socket.socket()
    if buffer_bytes is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(
        client, (listener.address.host, listener.address.port)
    )
    return client


async def receive(client: socket.socket, count: int, *, at_a_time: int = 1 << 20) -> bytes:
    """`count` bytes, or less where the connection ends."""
    loop = asyncio.get_running_loop()
    received = bytearray()
    while len(received) < count:
        piece = await loop.sock_recv(client, min(at_a_time, count - len(received)))
        if not piece:
            break
        received += piece
    return bytes(received)


async def wait_until(condition: Callable[[], bool]) -> None:
    """Returns when the loop has made it so; the test's own limit ends a vain wait."""
    while not condition():  # noqa: ASYNC110 - it is the kernel that is waited for
        await asyncio.sleep(0.001)


class DataFile:
    """A file with random bytes, open for reading."""

    def __init__(self, path: Path, size: int) -> None:
        self.data = os.urandom(size)
        path.write_bytes(self.data)
        self._file = path.open("rb", buffering=0)

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        self._file.close()

    def region(self, position: int, size: int) -> FileRegion:
        return FileRegion(self, Position(position), size)


def with_regions(*parts: bytes | FileRegion) -> EncodedResponse:
    """A frame made of bytes and runs of files, one after the other."""
    data = bytearray(pack(">i", sum(map(len, parts))))
    regions = []
    for part in parts:
        if isinstance(part, FileRegion):
            regions.append((len(data), part))
        else:
            data += part
    return EncodedResponse(data, regions)
