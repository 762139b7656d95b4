"""The sending half of a connection: bytes through the transport, runs of files by sendfile.

Invariants:
1. Parts leave in the order in which they were queued. A run of a file is begun only when the
   transport holds nothing back, and bytes go to the transport only when no run is under way.
2. The event loop never waits for a disk: what is not in memory is read in a thread first.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable
from typing import Final

from ottla.model.file_region import FileRegion
from ottla.net.file_sender import HAS_SENDFILE, FileSender, Writers
from ottla.net.residency import is_resident, read_resident, warm
from ottla.protocol.frames import EncodedResponse

log = logging.getLogger(__name__)

COPIED_BYTES_MAX: Final = 32 * 1024
"""Sendfile takes four calls of the kernel, the probes and the reply's head among them; up to here a
copy is cheaper."""

Part = bytes | bytearray | memoryview | FileRegion


class ReplySender:
    """What a client is still to be sent."""

    def __init__(self, loop: asyncio.AbstractEventLoop, after_sending: Callable[[], None]) -> None:
        self._loop = loop
        self._after_sending = after_sending
        self._transport: asyncio.Transport | None = None
        self._socket: socket.socket | None = None
        """What runs of files are sent on; None where they go through the transport."""
        self._writers: Writers = loop
        """Who tells when the socket takes more."""
        self._is_paused = False
        self._unsent: deque[Part] = deque()
        self._files: FileSender | None = None
        self._warming: asyncio.Future[None] | None = None
        self.unsent_bytes = 0
        """Bytes of replies in memory; runs of files take none."""

    @property
    def is_empty(self) -> bool:
        return not self._unsent

    def open(self, transport: asyncio.Transport) -> None:
        """The connection stands."""
        self._transport = transport
        # Zero makes asyncio tell of every byte it had to keep, so that order with sendfile holds.
        transport.set_write_buffer_limits(high=0)
        if HAS_SENDFILE and not transport.get_extra_info("cipher"):
            self._socket = transport.get_extra_info("socket")
            self._writers = transport.get_extra_info("writers", self._loop)

    def close(self) -> None:
        """The connection is gone, and with it what was not sent."""
        self._transport = None
        self._unsent.clear()
        if self._files is not None:
            self._files.close()

    def pause(self) -> None:
        """The transport holds bytes back."""
        self._is_paused = True

    def resume(self) -> None:
        """The transport holds nothing back any more."""
        self._is_paused = False
        self.send()

    def queue(self, reply: EncodedResponse) -> None:
        """Puts a reply behind those that are still to be sent."""
        self.unsent_bytes += len(reply.data)
        if not reply.regions:
            self._unsent.append(reply.data)
            return
        view = memoryview(reply.data)
        start = 0
        for position, region in reply.regions:
            if position > start:
                self._unsent.append(view[start:position])
            self._unsent.append(self._small(region) or region)
            start = position
        if start < len(view):
            self._unsent.append(view[start:])

    def _small(self, region: FileRegion) -> bytearray | None:
        """The bytes of a region that leave together with the rest of the reply at less cost than by
        calls of their own."""
        if region.size > COPIED_BYTES_MAX or self._socket is None:
            return None
        data = read_resident(region)
        if data is not None:
            self.unsent_bytes += region.size
        return data

    def send(self) -> None:
        """Sends as much as the socket takes now."""
        transport = self._transport
        if transport is None or not self._unsent:
            return
        try:
            while self._unsent and not self._is_paused and self._warming is None:
                if isinstance(self._unsent[0], FileRegion):
                    if not self._send_region(self._unsent[0]):
                        break
                else:
                    self._send_bytes(transport)
        except OSError as error:
            self._give_up(error)
            return
        self._after_sending()

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
        elif unsent and (files := self._files or self._file_sender()) is not None:
            # Nothing but the head of the reply whose run follows: nobody else waits for it.
            self.unsent_bytes -= len(first)
            sent = files.send_ahead(first)
            if sent < len(first):
                transport.write(memoryview(first)[sent:])
            return
        self.unsent_bytes -= len(first)
        transport.write(first)

    def _file_sender(self) -> FileSender | None:
        if self._files is None and self._socket is not None:
            self._files = FileSender(self._writers, self._socket)
        return self._files

    def _send_region(self, region: FileRegion) -> bool:
        """Sends on with the run at the head of the queue; True when it is gone."""
        files = self._files
        if files is not None and files.is_busy:
            if not files.advance():
                return False
        elif not is_resident(region):
            self._warming = self._loop.run_in_executor(None, warm, region)
            self._warming.add_done_callback(lambda _done: self._send_warmed(region))
            return False
        elif not self._begin_region(region):
            return False
        self._unsent.popleft()
        return True

    def _begin_region(self, region: FileRegion) -> bool:
        transport = self._transport
        assert transport is not None
        files = self._files or self._file_sender()
        if files is None:
            transport.write(_whole(region))
            return True
        if files.send(region):
            return True
        files.wait_writable(self.send)
        return False

    def _send_warmed(self, region: FileRegion) -> None:
        warming, self._warming = self._warming, None
        if self._transport is None or warming is None:
            return
        try:
            warming.result()
            if self._begin_region(region):
                self._unsent.popleft()
        except OSError as error:
            self._give_up(error)
            return
        self.send()

    def _give_up(self, error: OSError) -> None:
        log.debug("sending failed: %s", error)
        if self._transport is not None:
            self._transport.abort()


def _whole(region: FileRegion) -> bytes:
    data = region.read()
    if len(data) < region.size:
        raise ConnectionAbortedError("a segment file ended inside a region being sent")
    return data
