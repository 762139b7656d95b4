"""One connection to a broker, from the client's side: frames out, the answers back.

Requests are pipelined: the broker answers them in order. Whatever breaks the connection fails
every request in flight with the same typed error. Does not know messages, versions or which
broker it talks to.

    ConnectionFailed
    ├── CannotConnect        nothing accepts connections there
    ├── ConnectionLost       it was open, and ended
    ├── NotABroker           what came back is not Kafka's protocol
    ├── ResponseTimedOut     no answer in time; the connection is closed
    └── SendingTimedOut      a request was not taken in time; the connection is closed
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Sequence
from struct import Struct
from typing import Final

from ottla.errors import ErrorCode, OttlaError
from ottla.net.frame_pool import FramePool
from ottla.net.frame_writer import CAN_WRITE_PARTS, FrameWriter, Part
from ottla.net.own_machine import connect_unpaced

SCRATCH_BYTES: Final = 64 * 1024
FRAME_BYTES_MAX: Final = 256 * 1024 * 1024
"""Larger than any answer a client asks for; the first bytes of TLS or HTTP announce more."""
REQUESTS_IN_FLIGHT_MAX: Final = 256
WRITE_BUFFER_BYTES_MAX: Final = 4 * 1024 * 1024
PREFIX_BYTES: Final = 4
CORRELATION_BYTES: Final = 4

Frame = bytes | bytearray | Sequence[Part]
"""A whole frame, or its parts in order, which must not change until there is an answer."""

_INT32: Final = Struct(">i")
_TLS_ALERT: Final = 0x15
_TLS_HANDSHAKE: Final = 0x16


class ConnectionFailed(OttlaError):
    """The connection cannot be used, or not any more."""

    code = ErrorCode.NETWORK_EXCEPTION

    def __init__(self, peer: str, reason: str) -> None:
        self.peer = peer
        self.reason = reason
        super().__init__(reason)


class CannotConnect(ConnectionFailed):
    """Nothing accepts connections at the address."""

    def __init__(self, peer: str, cause: BaseException) -> None:
        self.cause = cause
        super().__init__(peer, f"cannot connect to {peer}: {_plain_cause(cause)}")


class ConnectionLost(ConnectionFailed):
    """The connection was open and ended, by the broker's will, the network's or our own."""

    def __init__(self, peer: str, cause: BaseException | None = None) -> None:
        self.cause = cause
        why = "was closed" if cause is None else f"broke: {_plain_cause(cause)}"
        super().__init__(peer, f"the connection to {peer} {why}")


class NotABroker(ConnectionFailed):
    """Something answers there, but not in Kafka's protocol."""

    code = ErrorCode.INVALID_REQUEST

    def __init__(self, peer: str, first_bytes: bytes) -> None:
        self.first_bytes = first_bytes
        super().__init__(peer, f"{peer} does not speak Kafka's protocol: {_guess(first_bytes)}")


class ResponseTimedOut(ConnectionFailed):
    """The answer did not come in time."""

    code = ErrorCode.REQUEST_TIMED_OUT

    def __init__(self, peer: str, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        super().__init__(peer, f"{peer} did not answer within {timeout_s:g} s")


class SendingTimedOut(ConnectionFailed):
    """The broker, or the network before it, did not take a request in time."""

    code = ErrorCode.REQUEST_TIMED_OUT

    def __init__(self, peer: str, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        super().__init__(peer, f"{peer} did not take what it was sent within {timeout_s:g} s")


class ClientConnection:
    """An open connection. Close it, or use it as an asynchronous context."""

    __slots__ = (
        "_answers",
        "_closed",
        "_failure",
        "_frame",
        "_frame_filled",
        "_loop",
        "_may_write",
        "_next_correlation",
        "_pool",
        "_room",
        "_scratch",
        "_scratch_filled",
        "_transport",
        "_writer",
        "peer",
    )

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._writer: FrameWriter | None = None
        """What sends, where the system can send a frame in parts; else the transport does."""
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._scratch_filled = 0
        self._pool = FramePool()
        self._frame: memoryview | None = None
        self._frame_filled = 0
        self._next_correlation = 0
        self._answers: deque[tuple[int, asyncio.Future[memoryview]]] = deque()
        self._room = asyncio.Semaphore(REQUESTS_IN_FLIGHT_MAX)
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._failure: ConnectionFailed | None = None
        self._closed: asyncio.Future[None] = self._loop.create_future()

    @classmethod
    async def open(cls, host: str, port: int, *, timeout_s: float) -> ClientConnection:
        """Connects, trying each address the name resolves to."""
        peer = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        connection = cls(peer)
        try:
            async with asyncio.timeout(timeout_s):
                await connection._connect(host, port)
        except (OSError, UnicodeError) as error:
            raise CannotConnect(peer, error) from error
        return connection

    async def _connect(self, host: str, port: int) -> None:
        made = await connect_unpaced(host, port)
        if made is not None:
            await self._loop.create_connection(lambda: _Receiver(self), sock=made)
            return
        await self._loop.create_connection(
            lambda: _Receiver(self), host, port, happy_eyeballs_delay=0.25
        )

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._transport is not None and self._failure is None

    @property
    def in_flight(self) -> int:
        """How many requests wait for their answer."""
        return len(self._answers)

    def next_correlation_id(self) -> int:
        """The id to put in the next request's header."""
        correlation_id = self._next_correlation
        self._next_correlation = (correlation_id + 1) & 0x7FFFFFFF
        return correlation_id

    async def request(self, frame: Frame, correlation_id: int, *, timeout_s: float) -> memoryview:
        """Sends a whole request frame; returns the answer without its size prefix."""
        async with self._room:
            await self._may_write.wait()
            transport = self._usable_transport()
            answer: asyncio.Future[memoryview] = self._loop.create_future()
            self._answers.append((correlation_id, answer))
            self._write(transport, frame)
            timer = self._loop.call_later(timeout_s, self._time_out, answer, timeout_s)
            try:
                return await answer
            finally:
                timer.cancel()

    async def send(self, frame: Frame, *, timeout_s: float) -> None:
        """Sends a frame that the broker never answers; returns when the whole of it has left.

        Closing the connection after that loses nothing of it, and its memory may be used again.
        """
        await self._may_write.wait()
        self._write(self._usable_transport(), frame)
        failure = SendingTimedOut(self.peer, timeout_s)
        timer = self._loop.call_later(timeout_s, self._fail, failure)
        try:
            has_left = await self._wait_left()
        finally:
            timer.cancel()
        if not has_left:
            assert self._failure is not None, "only a failure keeps what was written from leaving"
            raise self._failure

    def close(self) -> None:
        """Ends the connection; whoever waits for an answer gets ConnectionLost."""
        self._fail(ConnectionLost(self.peer))

    async def wait_closed(self) -> None:
        """Returns when the socket is closed."""
        if self._transport is not None:
            await asyncio.shield(self._closed)

    async def __aenter__(self) -> ClientConnection:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        await self.wait_closed()

    def _usable_transport(self) -> asyncio.Transport:
        if self._failure is not None:
            raise self._failure
        if self._transport is None:
            raise ConnectionLost(self.peer)
        return self._transport

    def _write(self, transport: asyncio.Transport, frame: Frame) -> None:
        parts = (frame,) if isinstance(frame, bytes | bytearray) else frame
        if self._writer is None:
            transport.write(b"".join(parts))
            return
        self._writer.write(parts)
        if self._writer.unsent_bytes > WRITE_BUFFER_BYTES_MAX:
            self._may_write.clear()

    async def _wait_left(self) -> bool:
        """Returns when all that was written has left; False where the connection failed first."""
        if self._writer is not None:
            return await self._writer.wait_left()
        await self._may_write.wait()
        return self._failure is None

    def _time_out(self, answer: asyncio.Future[memoryview], timeout_s: float) -> None:
        if not answer.done():
            self._fail(ResponseTimedOut(self.peer, timeout_s))

    def _fail(self, failure: ConnectionFailed) -> None:
        if self._failure is not None:
            return
        self._failure = failure
        self._may_write.set()
        if self._writer is not None:
            self._writer.close()
        if self._transport is not None:
            self._transport.abort()
        while self._answers:
            _, answer = self._answers.popleft()
            if not answer.done():
                answer.set_exception(failure)

    # --- called by the receiver and the writer

    def _connected(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(0)  # where it writes, it tells of every byte held back
        opened = transport.get_extra_info("socket")
        if opened is not None and opened.family in (socket.AF_INET, socket.AF_INET6):
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if opened is not None and CAN_WRITE_PARTS:
            self._writer = FrameWriter(self._loop, opened.fileno(), self._written)

    def _written(self, error: OSError | None) -> None:
        if error is not None:
            self._fail(ConnectionLost(self.peer, error))
        self._may_write.set()

    def _disconnected(self, cause: BaseException | None) -> None:
        self._fail(ConnectionLost(self.peer, cause))
        if not self._closed.done():
            self._closed.set_result(None)

    def _buffer(self) -> memoryview:
        if self._frame is not None:
            return self._frame[self._frame_filled :]
        return self._scratch[self._scratch_filled :]

    def _received(self, count: int) -> None:
        if self._frame is None:
            self._scratch_filled += count
            self._cut_frames()
            return
        self._frame_filled += count
        if self._frame_filled == len(self._frame):
            frame, self._frame = self._frame, None
            self._deliver(frame)

    def _cut_frames(self) -> None:
        """Hands out the frames in the scratch buffer; one not whole yet gets its own buffer."""
        scratch, filled, start = self._scratch, self._scratch_filled, 0
        while filled - start >= PREFIX_BYTES and self._failure is None:
            (size,) = _INT32.unpack_from(scratch, start)
            if not CORRELATION_BYTES <= size <= FRAME_BYTES_MAX:
                self._fail(NotABroker(self.peer, bytes(scratch[start:filled])))
                return
            start += PREFIX_BYTES
            end = start + size
            if end > filled:
                self._frame = self._pool.take(size)
                self._frame_filled = filled - start
                self._frame[: self._frame_filled] = scratch[start:filled]
                start = filled
                break
            # A copy: messages keep views of their frame, and the scratch buffer is used again.
            self._deliver(memoryview(bytes(scratch[start:end])))
            start = end
        rest = bytes(scratch[start:filled])
        scratch[: len(rest)] = rest
        self._scratch_filled = len(rest)

    def _deliver(self, frame: memoryview) -> None:
        (correlation_id,) = _INT32.unpack_from(frame)
        if not self._answers or self._answers[0][0] != correlation_id:
            self._fail(NotABroker(self.peer, bytes(frame[:16])))
            return
        _, answer = self._answers.popleft()
        if not answer.done():
            answer.set_result(frame)


class _Receiver(asyncio.BufferedProtocol):
    """What the event loop calls; everything is the connection's."""

    __slots__ = ("_connection",)

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._connection._connected(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection._disconnected(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint  # asyncio's guess; the frame in hand says better how much is to come
        return self._connection._buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._connection._received(nbytes)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._connection._may_write.clear()

    def resume_writing(self) -> None:
        self._connection._may_write.set()


def _plain_cause(cause: BaseException) -> str:
    """What the operating system means, in words."""
    if isinstance(cause, socket.gaierror):
        return "the name cannot be resolved"
    if isinstance(cause, TimeoutError):
        return "no answer from that address in time"
    if isinstance(cause, ConnectionRefusedError):
        return "nothing listens there"
    if isinstance(cause, ConnectionResetError | BrokenPipeError):
        return "the other side closed it"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(cause) or type(cause).__name__


def _guess(first_bytes: bytes) -> str:
    if first_bytes[:5] == b"HTTP/":
        return "an HTTP server answers"
    if first_bytes[:1] and first_bytes[0] in (_TLS_ALERT, _TLS_HANDSHAKE):
        return "the port expects TLS"
    return "its answer cannot be read"
