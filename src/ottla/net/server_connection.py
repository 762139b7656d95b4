"""One client's connection: frames in, replies out in the order of the requests.

Does not know what a frame means; `answer` does, and says at once or by a future what to send.

Invariants:
1. Replies leave in the order in which their requests came, whatever order they are ready in.
2. All frames of one read are handled before anything is written, and their replies leave together,
   unless they take longer than a turn: then the rest waits in line with others like it.
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
from ottla.net.receive_budget import ReceiveBudget, Room
from ottla.net.receive_buffers import BUFFER_BYTES, ReceiveBuffers
from ottla.net.reply_sender import ReplySender
from ottla.net.turns import TURN_SECONDS, Turns
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
    turns: Turns


class ServerConnection(asyncio.BufferedProtocol):
    """The protocol object asyncio drives; created by the listener for each client."""

    def __init__(self, shared: Shared, limits: ConnectionLimits, register: Register) -> None:
        self._answer = shared.answer
        self._budget = shared.budget
        self._turns = shared.turns
        self._room: Room | None = None
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
        self._is_in_line = False
        self._socket: socket.socket | None = None
        self.peer = Peer("?", 0)
        self.was_active = True
        """Whether anything came or left since the listener looked last."""
        self.has_finished_request = True
        """Whether a request came whole since the listener looked last."""

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
            self._socket = its_socket
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
        # Others in line have waited longer: one request goes ahead of them, not all of a read.
        seconds = 0.0 if self._turns.is_anybody_waiting else TURN_SECONDS
        end = self._loop.time() + seconds
        try:
            while not is_stopped and (frame := receiver.next_frame()) is not None:
                self._accept(self._answer(frame, self.peer))
                self.has_finished_request = True
                if self._room is not None:
                    self._release_room()
                is_stopped = self._must_pause() or (receiver.has_more and self._loop.time() >= end)
        except ProtocolError as error:
            log.info("closing the connection of %s: %s", self.peer, error)
            self._sender.send()
            self._close()
            return
        if receiver.settle() or receiver.missing_bytes:
            self._ask_for_room()
        self._sender.send()
        if self._must_pause():
            self._pause()
        elif is_stopped and receiver.kept_bytes:
            # The turn is over, or sending made room: the frames left may be whole, and nothing
            # more need come for them.
            self._stand_in_line()

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

    @property
    def request_bytes(self) -> int:
        """How much has come of the request that has come in part."""
        return self._receiver.kept_bytes

    @property
    def holds_room(self) -> bool:
        """Whether others may have to wait for memory until that request is whole."""
        return self._room is not None

    def _ask_for_room(self) -> None:
        receiver = self._receiver
        room = self._room
        if room is None:
            room = self._room = Room(receiver.large_bytes, self._room_granted)
        if self._budget.reserve(room, receiver.missing_bytes):
            self._use_room()
        elif not receiver.has_buffer:
            receiver.keep()

    def _room_granted(self) -> None:
        self._use_room()
        self._resume_if_possible()

    def _use_room(self) -> None:
        if self._receiver.has_buffer:
            self._receiver.grow_large()
        else:
            self._receiver.begin_large()

    def _release_room(self) -> None:
        room, self._room = self._room, None
        if room is not None:
            self._budget.release(room)

    def _must_pause(self) -> bool:
        return (
            not self._is_open
            or (self._room is not None and self._room.wanted_bytes > 0)
            or self._sender.unsent_bytes > UNSENT_BYTES_MAX
            or len(self._waiting) >= self._in_flight_max
        )

    def _pause(self) -> None:
        if not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def _resume_if_possible(self) -> None:
        if not self._is_paused or self._is_draining or self._is_in_line or self._must_pause():
            return
        if self._receiver.kept_bytes:
            self._stand_in_line()
        else:
            self._read_again()

    def _read_again(self) -> None:
        assert self._transport is not None
        self._is_paused = False
        self._transport.resume_reading()

    def _stand_in_line(self) -> None:
        """Leaves the rest of what came for the next turn; nothing more is read until then."""
        if not self._is_in_line:
            self._is_in_line = True
            self._pause()
            self._turns.wait(self._take_turn)

    def _take_turn(self) -> None:
        """Goes on with frames that had been received before."""
        self._is_in_line = False
        if self._transport is None or self._is_draining or self._must_pause():
            return  # If it is still to go on, whatever it waits for resumes it.
        if self._has_gone():
            self.abort()
            return
        self._read_again()
        self._receiver.buffer()
        self._receiver.received(0)
        self._handle_frames()

    def _has_gone(self) -> bool:
        """Whether the client has left with requests unanswered: nobody wants those any more."""
        return self._socket is not None and bool(
            self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        )

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
