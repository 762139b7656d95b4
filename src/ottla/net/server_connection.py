"""One client's connection: frames in, replies out in the order of the requests.

Does not know what a frame means; `answer` does, and says at once or by a future what to send.

Invariants:
1. Replies leave in the order in which their requests came, whatever order they are ready in.
2. All frames of one read are handled before anything is written, and their replies leave together.
3. A client that does not read its replies, or has too many requests waiting, is not read from.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from dataclasses import dataclass
from typing import Final, Protocol

from ottla.errors import ProtocolError
from ottla.model.file_region import FileRegion
from ottla.net.file_sender import HAS_SENDFILE, FileSender, is_resident, warm
from ottla.net.frame_receiver import FrameReceiver
from ottla.protocol.frames import EncodedResponse as Reply

UNSENT_BYTES_MAX: Final = 1024 * 1024
"""Bytes of replies in memory above which a connection is not read from. Regions do not count."""

log = logging.getLogger(__name__)

Part = bytes | bytearray | memoryview | FileRegion


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end, and by which of our addresses it came."""

    host: str
    port: int
    local_host: str = ""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Answer(Protocol):
    """Turns a frame into a reply, into the promise of one, or into silence."""

    def __call__(
        self, frame: memoryview, peer: Peer
    ) -> Reply | asyncio.Future[Reply | None] | None: ...


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one client may hold of the broker's memory."""

    frame_bytes_max: int
    in_flight_max: int


class Register(Protocol):
    """Knows the open connections, and may refuse one more."""

    def admit(self, connection: ServerConnection) -> bool: ...

    def forget(self, connection: ServerConnection) -> None: ...


class ServerConnection(asyncio.BufferedProtocol):
    """The protocol object asyncio drives; created by the listener for each client."""

    def __init__(
        self, answer: Answer, scratch: memoryview, limits: ConnectionLimits, register: Register
    ) -> None:
        self._answer = answer
        self._limits = limits
        self._register = register
        self._receiver = FrameReceiver(scratch, limits.frame_bytes_max)
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[asyncio.Future[Reply | None]] = deque()
        self._unsent: deque[Part] = deque()
        self._unsent_bytes = 0
        self._transport: asyncio.Transport | None = None
        self._sender: FileSender | None = None
        self._transport_is_full = False
        self._warming: asyncio.Future[None] | None = None
        self._is_paused = False
        self._is_draining = False
        self.peer = Peer("?", 0)
        self.last_active = self._loop.time()

    # --- asyncio's calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # Zero makes asyncio tell of every byte it had to keep, so that order with sendfile holds.
        transport.set_write_buffer_limits(high=0)
        address = transport.get_extra_info("peername") or ("?", 0)
        local = transport.get_extra_info("sockname") or ("",)
        self.peer = Peer(str(address[0]), int(address[1]), str(local[0]))
        if not self._register.admit(self):
            transport.abort()
            return
        connected = transport.get_extra_info("socket")
        if connected is not None:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        return self._receiver.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self.last_active = self._loop.time()
        self._receiver.received(nbytes)
        self._handle_frames()

    def eof_received(self) -> bool:
        # A half-closed client still gets the replies it is owed, as Kafka's does not: close.
        return False

    def pause_writing(self) -> None:
        self._transport_is_full = True

    def resume_writing(self) -> None:
        self._transport_is_full = False
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        if self._sender is not None:
            self._sender.close()
        for future in self._waiting:
            future.cancel()
        self._waiting.clear()
        self._unsent.clear()
        self._transport = None
        self._register.forget(self)

    # --- the listener's calls ---

    @property
    def is_idle(self) -> bool:
        """Whether the client is owed nothing."""
        return not self._waiting and not self._unsent

    def drain(self) -> None:
        """Reads nothing more, and closes once every reply that is owed has left."""
        self._is_draining = True
        if self._transport is not None:
            self._transport.pause_reading()
            self._is_paused = True
            if self.is_idle:
                self._transport.close()

    def abort(self) -> None:
        """Closes without sending what is left."""
        if self._transport is not None:
            self._transport.abort()

    # --- requests ---

    def _handle_frames(self) -> None:
        receiver = self._receiver
        try:
            while not self._must_pause() and (frame := receiver.next_frame()) is not None:
                self._accept(self._answer(frame, self.peer))
        except ProtocolError as error:
            log.info("closing the connection of %s: %s", self.peer, error)
            self._send()
            self._close()
            return
        receiver.settle()
        self._send()
        if self._must_pause():
            self._pause()

    def _accept(self, reply: Reply | asyncio.Future[Reply | None] | None) -> None:
        if reply is None:
            return
        if isinstance(reply, Reply):
            if not self._waiting:
                self._queue(reply)
                return
            future: asyncio.Future[Reply | None] = self._loop.create_future()
            future.set_result(reply)
            reply = future
        else:
            reply.add_done_callback(self._on_reply)
        self._waiting.append(reply)

    def _on_reply(self, _future: asyncio.Future[Reply | None]) -> None:
        if self._transport is None:
            return
        waiting = self._waiting
        while waiting and waiting[0].done():
            future = waiting.popleft()
            if future.cancelled() or future.exception() is not None:
                self._close()
                return
            reply = future.result()
            if reply is not None:
                self._queue(reply)
        self._send()

    # --- back-pressure ---

    def _must_pause(self) -> bool:
        return (
            len(self._waiting) >= self._limits.in_flight_max
            or self._unsent_bytes > UNSENT_BYTES_MAX
            or self._transport is None
            or self._transport.is_closing()
        )

    def _pause(self) -> None:
        if not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def _resume_if_possible(self) -> None:
        if self._is_paused and not self._is_draining and not self._must_pause():
            assert self._transport is not None
            self._is_paused = False
            self._transport.resume_reading()
            if self._receiver.kept_bytes:
                self._loop.call_soon(self._handle_kept)

    def _handle_kept(self) -> None:
        """Goes on with frames that had been received before the pause."""
        if self._transport is None or self._is_paused:
            return
        self._receiver.buffer()
        self._receiver.received(0)
        self._handle_frames()

    # --- replies ---

    def _queue(self, reply: Reply) -> None:
        self._unsent_bytes += len(reply.data)
        if not reply.regions:
            self._unsent.append(reply.data)
            return
        view = memoryview(reply.data)
        start = 0
        for position, region in reply.regions:
            if position > start:
                self._unsent.append(view[start:position])
            self._unsent.append(region)
            start = position
        if start < len(view):
            self._unsent.append(view[start:])

    def _send(self) -> None:
        """Sends as much as the socket takes now."""
        transport = self._transport
        if transport is None:
            return
        unsent = self._unsent
        try:
            while unsent and not self._transport_is_full and self._warming is None:
                if isinstance(unsent[0], FileRegion):
                    if not self._send_region(unsent[0]):
                        break
                else:
                    self._send_bytes(transport)
        except OSError as error:
            log.debug("sending to %s failed: %s", self.peer, error)
            transport.abort()
            return
        if not unsent and self._is_draining and not self._waiting:
            transport.close()
        if self._is_paused:
            self._resume_if_possible()

    def _send_bytes(self, transport: asyncio.Transport) -> None:
        unsent = self._unsent
        first = unsent.popleft()
        assert not isinstance(first, FileRegion)
        if unsent and not isinstance(unsent[0], FileRegion):
            parts = [first]
            while unsent and not isinstance(unsent[0], FileRegion):
                part = unsent.popleft()
                assert not isinstance(part, FileRegion)
                parts.append(part)
            first = b"".join(parts)
        self._unsent_bytes -= len(first)
        transport.write(first)

    def _send_region(self, region: FileRegion) -> bool:
        """Sends on with the region at the head of the queue; True when it is gone."""
        sender = self._sender
        if sender is not None and sender.is_busy:
            if not sender.advance():
                return False
        elif not is_resident(region):
            self._warm(region)
            return False
        elif not self._begin_region(region):
            return False
        self._unsent.popleft()
        self.last_active = self._loop.time()
        return True

    def _begin_region(self, region: FileRegion) -> bool:
        transport = self._transport
        assert transport is not None
        if self._sender is None:
            transport_socket = transport.get_extra_info("socket")
            if not HAS_SENDFILE or transport_socket is None or transport.get_extra_info("cipher"):
                transport.write(region.read())
                return True
            self._sender = FileSender(self._loop, transport_socket)
        if self._sender.send(region):
            return True
        self._sender.wait_writable(self._send)
        return False

    def _warm(self, region: FileRegion) -> None:
        self._warming = self._loop.run_in_executor(None, warm, region)
        self._warming.add_done_callback(lambda _done: self._begin_warmed(region))

    def _begin_warmed(self, region: FileRegion) -> None:
        warming, self._warming = self._warming, None
        if self._transport is None or warming is None:
            return
        if warming.exception() is not None:
            log.error("reading a segment failed: %s", warming.exception())
            self._transport.abort()
            return
        try:
            if self._begin_region(region):
                self._unsent.popleft()
        except OSError as error:
            log.debug("sending to %s failed: %s", self.peer, error)
            self._transport.abort()
            return
        self._send()

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()
