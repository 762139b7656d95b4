"""One server connection without a socket: a test plays the client's end and the event loop's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from struct import pack, unpack_from
from typing import Any

from ottla.net.receive_budget import ReceiveBudget
from ottla.net.receive_buffers import ReceiveBuffers
from ottla.net.server_connection import ConnectionLimits, Peer, ServerConnection, Shared
from ottla.net.turns import Turns
from ottla.protocol.frames import EncodedResponse

FRAME_BYTES_MAX = 4 << 20
Answered = EncodedResponse | asyncio.Future[EncodedResponse | None] | None


def reply(name: bytes) -> EncodedResponse:
    """A frame that says `name` and nothing else."""
    return EncodedResponse(bytearray(pack(">i", len(name)) + name), [])


def request(name: bytes) -> bytes:
    return pack(">i", len(name)) + name


def frames_in(stream: bytes) -> list[bytes]:
    """The frames of a stream that must end with a whole one."""
    found, start = [], 0
    while start < len(stream):
        (size,) = unpack_from(">i", stream, start)
        assert start + 4 + size <= len(stream), "the stream ends inside a frame"
        found.append(stream[start + 4 : start + 4 + size])
        start += 4 + size
    return found


class Guests:
    """Lets in everybody, or nobody."""

    def __init__(self, *, admits: bool = True) -> None:
        self.admits = admits
        self.present: set[ServerConnection] = set()

    def admit(self, connection: ServerConnection) -> bool:
        if self.admits:
            self.present.add(connection)
        return self.admits

    def forget(self, connection: ServerConnection) -> None:
        self.present.discard(connection)


class WireEnd(asyncio.Transport):
    """The transport of a connection: feeds it what the client sends, keeps what it is sent."""

    def __init__(
        self,
        answer: Callable[[bytes], Answered],
        *,
        in_flight_max: int = 100,
        budget: ReceiveBudget | None = None,
        guests: Guests | None = None,
        line: Turns | None = None,
    ) -> None:
        super().__init__()
        self.handled: list[bytes] = []
        self.writes: list[bytes] = []
        self.takes = True
        """Whether the client reads what it is sent."""
        self.is_paused = False
        self.is_aborted = False
        self._closing = False
        self._held = bytearray()
        self._coming = b""
        self._answers = answer
        self.guests = guests or Guests()
        budget = budget or ReceiveBudget(1 << 30)
        shared = Shared(self._answer, ReceiveBuffers(), budget, line or Turns())
        limits = ConnectionLimits(FRAME_BYTES_MAX, in_flight_max)
        self.connection = ServerConnection(shared, limits, self.guests)
        self.connection.connection_made(self)

    def _answer(self, frame: memoryview, peer: Peer) -> Answered:
        del peer
        name = bytes(frame)
        self.handled.append(name)
        return self._answers(name)

    # --- the client ---

    def send(self, data: bytes) -> None:
        """The client sends; the connection gets it as far as it reads."""
        self._coming += data
        self._feed()

    def read(self) -> None:
        """The client reads all that was held back, and whatever comes from now on."""
        self.takes = True
        if self._held:
            self.writes.append(bytes(self._held))
            self._held.clear()
            self.connection.resume_writing()
            if self._closing:
                self._end()

    def vanish(self) -> None:
        """The client is gone."""
        self._closing = True
        self._end()

    @property
    def replies(self) -> list[bytes]:
        return frames_in(b"".join(self.writes))

    def _feed(self) -> None:
        while self._coming and not self.is_paused and not self._closing:
            buffer = self.connection.get_buffer(-1)
            assert len(buffer), "asyncio would refuse an empty buffer"
            count = min(len(buffer), len(self._coming))
            buffer[:count] = self._coming[:count]
            self._coming = self._coming[count:]
            self.connection.buffer_updated(count)

    # --- what the connection calls ---

    def write(self, data: Any) -> None:
        assert not self.is_aborted
        if self.takes:
            self.writes.append(bytes(data))
            return
        is_first = not self._held
        self._held += data
        if is_first:
            self.connection.pause_writing()

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False
        # The selector looks at the socket in the next round, behind what is ready by then.
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._feed)

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            if not self._held:
                self._end()

    def abort(self) -> None:
        self._closing = self.is_aborted = True
        self._end()

    def _end(self) -> None:
        asyncio.get_running_loop().call_soon(self.connection.connection_lost, None)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high == 0, "every byte that is held back must be told"

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        known = {"peername": ("10.1.2.3", 4567), "sockname": ("10.0.0.1", 9092)}
        return known.get(name, default)
