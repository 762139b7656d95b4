"""Sends runs of files down a socket by sendfile, never waiting for a disk on the event loop."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from typing import Final, Protocol

from ottla.model.file_region import FileRegion

TURN_BYTES_MAX: Final = 2 * 1024 * 1024
"""A reader that keeps up with us gives way to the other connections after this much."""
HAS_SENDFILE: Final = hasattr(os, "sendfile") and sys.platform == "linux"


class Writers(Protocol):
    """Calls whoever waits until a socket takes more: an event loop, or its selector itself."""

    def add_writer(self, fd: int, callback: Callable[[], None], /) -> None: ...

    def remove_writer(self, fd: int, /) -> bool: ...


class FileSender:
    """Sends one region at a time on a connection's socket and calls back when it has left."""

    __slots__ = (
        "_descriptor",
        "_position",
        "_region",
        "_remaining",
        "_socket",
        "_waiting",
        "_writers",
    )

    def __init__(self, writers: Writers, transport_socket: socket.socket) -> None:
        self._writers = writers
        # A transport's descriptor is watched by the transport; a duplicate is another one.
        self._socket = socket.socket(fileno=os.dup(transport_socket.fileno()))
        self._socket.setblocking(False)
        self._descriptor = self._socket.fileno()
        self._region: FileRegion | None = None
        self._position = 0
        self._remaining = 0
        self._waiting = False

    @property
    def is_busy(self) -> bool:
        return self._region is not None

    def send_ahead(self, data: bytes | bytearray | memoryview) -> int:
        """Sends bytes that a region follows, so that both share packets; says how many left."""
        assert self._region is None
        try:
            return self._socket.send(data, socket.MSG_MORE)
        except (BlockingIOError, InterruptedError):
            return 0

    def send(self, region: FileRegion) -> bool:
        """Begins a region; True when all of it left at once."""
        assert self._region is None
        self._region = region
        self._position = region.position
        self._remaining = region.size
        return self._advance()

    def wait_writable(self, resume: Callable[[], None]) -> None:
        """Calls `resume` each time the socket takes more, until the region is gone."""
        if not self._waiting:
            self._waiting = True
            self._writers.add_writer(self._descriptor, resume)

    def advance(self) -> bool:
        """Sends on; True when the region is gone."""
        if not self._advance():
            return False
        if self._waiting:
            self._waiting = False
            self._writers.remove_writer(self._descriptor)
        return True

    def close(self) -> None:
        """Gives the descriptor back and drops a region half sent."""
        if self._descriptor >= 0:
            if self._waiting:
                self._writers.remove_writer(self._descriptor)
            self._socket.close()
            self._descriptor = -1
        self._region = None

    def _advance(self) -> bool:
        region = self._region
        assert region is not None
        turn_end = self._position + TURN_BYTES_MAX
        while self._remaining:
            wanted = min(self._remaining, turn_end - self._position)
            if not wanted:
                return False
            try:
                count = os.sendfile(self._descriptor, region.file.fileno(), self._position, wanted)
            except (BlockingIOError, InterruptedError):
                return False
            if count == 0:
                # The file is shorter than the log believes: the frame cannot be completed.
                raise ConnectionAbortedError("a segment file ended inside a region being sent")
            self._position += count
            self._remaining -= count
        self._region = None
        return True
