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
from typing import Final, Protocol, cast

import msgspec

from ottla.errors import ProtocolError
from ottla.net.frame_receiver import FrameReceiver
from ottla.net.promise import Promise
from ottla.net.receive_budget import ReceiveBudget
from ottla.net.receive_buffers import BUFFER_BYTES, ReceiveBuffers
from ottla.net.reply_sender import ReplySender
from ottla.protocol.frames import EncodedResponse as Reply

UNSENT_BYTES_MAX: Final = 1024 * 1024
"""Bytes of replies in memory above which a connection is not read from. Regions do not count."""

log = logging.getLogger(__name__)


class Peer(msgspec.Struct, frozen=True):
    """Who is at the other end, and by which of our addresses it came."""

    host: str
    port: int
    local_host: str = ""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


Promised = Promise | asyncio.Future[Reply | None]


class Answer(Protocol):
    """Turns a frame into a reply, into the promise of one, or into silence."""

    def __call__(self, frame: memoryview, peer: Peer) -> Reply | Promised | None: ...


class ConnectionLimits(msgspec.Struct, frozen=True):
    """What one client may hold of the broker's memory."""

    frame_bytes_max: int
    in_flight_max: int


class Register(Protocol):
    """Knows the open connections, and may refuse one more."""

    def admit(self, connection: ServerConnection) -> bool: ...

    def forget(self, connection: ServerConnection) -> None: ...


class Shared(msgspec.Struct, frozen=True):
    """What all connections of a server share."""

    answer: Answer
    buffers: ReceiveBuffers
    budget: ReceiveBudget


class ServerConnection(asyncio.BufferedProtocol):
    """The protocol object asyncio drives; created by the listener for each client."""

    def __init__(self, shared: Shared, limits: ConnectionLimits, register: Register) -> None:
        self._answer = shared.answer
        self._budget = shared.budget
        self._reserved_bytes = 0
        self._in_flight_max = limits.in_flight_max
        self._register = register
        self._receiver = FrameReceiver(shared.buffers, limits.frame_bytes_max)
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Promised] = deque()
        self._sender = ReplySender(self._loop, self._after_sending)
        self._transport: asyncio.Transport | None = None
        self._is_open = False
        self._is_paused = False
        self._is_draining = False
        self._awaits_room = False
        self.peer = Peer("?", 0)
        self.was_active = True
        """Whether anything came or left since the listener looked last."""

    # --- asyncio's calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        connected = cast("asyncio.Transport", transport)
        self._transport = connected
        self._is_open = True
        self._sender.open(connected)
        address = transport.get_extra_info("peername") or ("?", 0)
        local = transport.get_extra_info("sockname") or ("",)
        self.peer = Peer(str(address[0]), int(address[1]), str(local[0]))
        if not self._register.admit(self):
            self.abort()
            return
        its_socket = transport.get_extra_info("socket")
        if its_socket is not None:
            its_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        receiver = self._receiver
        if receiver.expects_large and self._budget.has_room(BUFFER_BYTES):
            return receiver.buffer(BUFFER_BYTES)
        return receiver.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self.was_active = True
        self._receiver.received(nbytes)
        self._handle_frames()

    def eof_received(self) -> bool:
        return False  # A client that sends no more is gone, as with Kafka.

    def pause_writing(self) -> None:
        self._sender.pause()

    def resume_writing(self) -> None:
        self._sender.resume()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._sender.close()
        for future in self._waiting:
            future.cancel()
        self._waiting.clear()
        self._is_open = False
        self._transport = None
        self._receiver.close()
        self._budget.leave(self._room_granted)
        self._release_room()
        self._register.forget(self)

    # --- the listener's calls ---

    @property
    def is_idle(self) -> bool:
        """Whether the client is owed nothing."""
        return not self._waiting and self._sender.is_empty

    def drain(self) -> None:
        """Reads nothing more, and closes once every reply that is owed has left."""
        self._is_draining = True
        if self._transport is not None:
            self._transport.pause_reading()
            self._is_paused = True
            if self.is_idle:
                self._close()

    def abort(self) -> None:
        """Closes without sending what is left."""
        self._is_open = False
        if self._transport is not None:
            self._transport.abort()

    # --- requests ---

    def _handle_frames(self) -> None:
        receiver = self._receiver
        is_stopped = self._must_pause()
        try:
            while not is_stopped and (frame := receiver.next_frame()) is not None:
                self._accept(self._answer(frame, self.peer))
                if self._reserved_bytes:
                    self._release_room()
                is_stopped = self._must_pause()
        except ProtocolError as error:
            log.info("closing the connection of %s: %s", self.peer, error)
            self._sender.send()
            self._close()
            return
        if receiver.settle():
            self._ask_for_room()
        self._sender.send()
        if self._must_pause():
            self._pause()
        elif is_stopped and receiver.kept_bytes:
            # Sending made room: the frames left may be whole, and nothing more need come for them.
            self._loop.call_soon(self._handle_kept)

    def _accept(self, reply: Reply | Promised | None) -> None:
        if reply is None:
            return
        if not isinstance(reply, Reply):
            self._waiting.append(reply)
            reply.add_done_callback(self._on_reply)
        elif self._waiting:
            kept = Promise()
            kept.settle(reply)
            self._waiting.append(kept)
        else:
            self._sender.queue(reply)

    def _on_reply(self, _promised: Promised) -> None:
        if not self._is_open:
            return
        waiting = self._waiting
        while waiting and waiting[0].done():
            future = waiting.popleft()
            if future.cancelled() or future.exception() is not None:
                self._close()
                return
            reply = future.result()
            if reply is not None:
                self._sender.queue(reply)
        if self._sender.is_empty:
            self._after_sending()  # Silence was all that was owed.
        else:
            self._sender.send()

    # --- back-pressure ---

    @property
    def is_mid_request(self) -> bool:
        """Whether a request has come in part."""
        return self._receiver.kept_bytes > 0 and not self._is_paused

    def _ask_for_room(self) -> None:
        size_bytes = self._receiver.large_bytes
        if self._budget.reserve(size_bytes):
            self._reserved_bytes = size_bytes
            self._receiver.begin_large()
            return
        self._receiver.keep()
        self._awaits_room = True
        self._budget.wait(size_bytes, self._room_granted)

    def _room_granted(self) -> None:
        self._awaits_room = False
        self._reserved_bytes = self._receiver.large_bytes
        self._receiver.begin_large()
        self._resume_if_possible()

    def _release_room(self) -> None:
        size_bytes, self._reserved_bytes = self._reserved_bytes, 0
        if size_bytes:
            self._budget.release(size_bytes)

    def _must_pause(self) -> bool:
        return (
            not self._is_open
            or self._awaits_room
            or self._sender.unsent_bytes > UNSENT_BYTES_MAX
            or len(self._waiting) >= self._in_flight_max
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

    def _after_sending(self) -> None:
        """Some replies have left: there may be room to go on, or nothing left to wait for."""
        self.was_active = True
        if self._is_draining and self.is_idle:
            self._close()
        if self._is_paused:
            self._resume_if_possible()

    def _close(self) -> None:
        self._is_open = False
        if self._transport is not None:
            self._transport.close()
