"""Sends runs of files down a socket by sendfile, never waiting for a disk on the event loop."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Callable
from typing import Final, Protocol

from ottla.model.file_region import FileRegion

PROBE_STRIDE_BYTES: Final = 128 * 1024
"""The kernel reads ahead in steps of this size, so one probe a step tells whether all is there."""
WARM_CHUNK_BYTES: Final = 1024 * 1024
TURN_BYTES_MAX: Final = 2 * 1024 * 1024
"""A reader that keeps up with us gives way to the other connections after this much."""
_NOT_RESIDENT: Final = frozenset({errno.EAGAIN, errno.EWOULDBLOCK})
_NOWAIT: Final[int] = getattr(os, "RWF_NOWAIT", 0)
HAS_SENDFILE: Final = hasattr(os, "sendfile") and sys.platform == "linux"


def is_resident(region: FileRegion) -> bool:
    """Whether the region can be read from memory, as far as probes at its strides tell."""
    if not _NOWAIT:
        return True
    probe = [bytearray(1)]
    last = region.position + region.size - 1
    try:
        descriptor = region.file.fileno()
        for position in (*range(region.position, last, PROBE_STRIDE_BYTES), last):
            if os.preadv(descriptor, probe, position, _NOWAIT) == 0:
                return True
    except OSError as error:
        # What has no descriptor lives in memory, and so do filesystems without the flag (tmpfs of
        # older kernels).
        return error.errno not in _NOT_RESIDENT
    return True


def read_resident(region: FileRegion) -> bytearray | None:
    """The region's bytes, unless some of them would have to come from a disk."""
    data = bytearray(region.size)
    try:
        count = os.preadv(region.file.fileno(), [data], region.position, _NOWAIT)
    except OSError as error:
        return None if error.errno in _NOT_RESIDENT else bytearray(region.read())
    return data if count == region.size else None


def warm(region: FileRegion) -> None:
    """Brings the region into the page cache. Blocks: run it in a thread."""
    descriptor = region.file.fileno()
    buffer = bytearray(min(WARM_CHUNK_BYTES, region.size))
    position: int = region.position
    end = position + region.size
    while position < end:
        count = os.preadv(descriptor, [memoryview(buffer)[: end - position]], position)
        if count <= 0:
            return
        position += count


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
