"""A connection's socket, read and written as soon as it is ready.

Does what asyncio's transport of a socket does for a `BufferedProtocol`, as far as servers of this
package use it; asyncio's documentation says when it calls what.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any, Final, cast

from ottla.net.direct_selector import READABLE, WRITABLE, DirectSelector

log = logging.getLogger(__name__)

_NOT_NOW: Final = (BlockingIOError, InterruptedError)


class DirectTransport:
    """One end of a connection."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        selector: DirectSelector,
        connected: socket.socket,
        protocol: asyncio.BufferedProtocol,
    ) -> None:
        self._loop = loop
        self._selector = selector
        self._socket = connected
        self._descriptor = connected.fileno()
        self._protocol = protocol
        self._unsent = bytearray()
        self._is_reading = True
        self._is_closing = False
        self._is_lost = False
        self._watched = 0

    def open(self) -> None:
        """Tells the protocol, and begins to read."""
        self._protocol.connection_made(cast("Any", self))  # it has what is used of a transport
        self._watch()

    # --- what the protocol calls ---

    def get_extra_info(self, name: str, default: object = None) -> object:
        if name == "socket":
            return self._socket
        if name == "writers":
            return self._selector
        try:
            if name == "peername":
                return self._socket.getpeername()
            if name == "sockname":
                return self._socket.getsockname()
        except OSError:
            pass  # The client is gone already.
        return default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """The only limit there is: every byte held back is told of."""
        if high or low:
            raise ValueError("a direct transport tells of every byte it holds back")

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        self._is_reading = False
        self._watch()

    def resume_reading(self) -> None:
        self._is_reading = True
        self._watch()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends, and holds back what the socket does not take now."""
        if self._is_lost:
            return
        if self._unsent:
            self._unsent += data
            return
        try:
            sent = self._socket.send(data)
        except _NOT_NOW:
            sent = 0
        except OSError as error:
            self._fail(error)
            return
        if sent < len(data):
            self._unsent += memoryview(data)[sent:]
            self._watch()
            self._protocol.pause_writing()

    def close(self) -> None:
        """Closes once all that was written has left."""
        if self._is_closing:
            return
        self._is_closing = True
        self._watch()
        if not self._unsent:
            self._lose(None)

    def abort(self) -> None:
        """Closes at once."""
        self._cut_off(None)

    # --- what the selector calls ---

    def _ready(self, events: int) -> None:
        try:
            if self._unsent and events & ~READABLE:
                self._send_on()
            if self._is_reading and not self._is_closing and events & ~WRITABLE:
                self._receive()
        except OSError as error:
            self._fail(error)
        except Exception as error:
            self._fail(error)
            raise

    def _receive(self) -> None:
        buffer = self._protocol.get_buffer(-1)
        try:
            count = self._socket.recv_into(buffer)
        except _NOT_NOW:
            return
        if count:
            self._protocol.buffer_updated(count)
        else:
            self.close()  # A client that sends no more is gone, as with Kafka.

    def _send_on(self) -> None:
        try:
            sent = self._socket.send(self._unsent)
        except _NOT_NOW:
            return
        del self._unsent[:sent]
        if self._unsent:
            return
        self._watch()
        if self._is_closing:
            self._lose(None)
        else:
            self._protocol.resume_writing()

    # --- the state of the socket ---

    def _watch(self) -> None:
        """Waits for what is of use now; for nothing, the selector must not know the socket."""
        events = 0
        if not self._is_lost:
            if self._is_reading and not self._is_closing:
                events |= READABLE
            if self._unsent:
                events |= WRITABLE
        if events == self._watched:
            return
        self._watched = events
        if events:
            self._selector.watch(self._descriptor, events, self._ready)
        else:
            self._selector.unwatch(self._descriptor)

    def _fail(self, error: Exception) -> None:
        log.debug("a connection failed: %s", error)
        self._cut_off(error)

    def _cut_off(self, error: Exception | None) -> None:
        self._is_closing = True
        self._unsent.clear()
        self._lose(error)

    def _lose(self, error: Exception | None) -> None:
        if self._is_lost:
            return
        self._is_lost = True
        self._watch()
        self._loop.call_soon(self._end, error)

    def _end(self, error: Exception | None) -> None:
        try:
            self._protocol.connection_lost(error)
        finally:
            self._socket.close()
