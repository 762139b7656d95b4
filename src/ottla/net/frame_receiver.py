"""Cuts a stream of bytes into size-prefixed frames, in place. Does not know sockets or messages.

Invariants:
1. Connections at rest own no buffer: bytes arrive in one scratch buffer that all connections of a
   server share, because one read is handled to its end before the next begins.
2. A frame is a view into that buffer, valid until the end of the turn that received it.
3. A large frame's own buffer is made by `begin_large`, when its owner has room for it, and grows
   with the bytes that came, not with the size it announced.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ottla.errors import FrameTooLarge

SCRATCH_BYTES: Final = 256 * 1024
LARGE_FRAME_BYTES: Final = 64 * 1024
"""A frame above this that is not complete yet gets a buffer of its own."""
EAGER_BYTES_MAX: Final = 1024 * 1024
"""As much of an announced frame is allocated before any of it has come."""
FRAME_BYTES_MIN: Final = 8
PREFIX_BYTES: Final = 4

_unpack_size = Struct(">i").unpack_from


class FrameReceiver:
    """The receiving half of one connection."""

    __slots__ = (
        "_end",
        "_frame_bytes_max",
        "_kept",
        "_large",
        "_large_filled",
        "_scratch",
        "_start",
        "large_bytes",
    )

    def __init__(self, scratch: memoryview, frame_bytes_max: int) -> None:
        self._scratch = scratch
        self._frame_bytes_max = frame_bytes_max
        self._kept = b""
        self._start = 0
        self._end = 0
        self._large: bytearray | None = None
        self._large_filled = 0
        self.large_bytes = 0
        """The size of a large frame that has begun to come; 0 where there is none."""

    @property
    def needs_room(self) -> bool:
        """Whether a large frame has begun to come that has no buffer yet."""
        return self.large_bytes > 0 and self._large is None

    @property
    def kept_bytes(self) -> int:
        """Received bytes that are held until more come or the connection may go on."""
        return self._large_filled if self._large is not None else len(self._kept)

    def buffer(self) -> memoryview:
        """Where the next bytes go. Asking changes nothing: the read may still fail."""
        if self._large is not None:
            return memoryview(self._large)[self._large_filled :]
        kept = self._kept
        if kept:
            self._scratch[: len(kept)] = kept
            return self._scratch[len(kept) :]
        return self._scratch

    def received(self, count: int) -> None:
        """`count` bytes were written to the buffer handed out last."""
        if self._large is not None:
            self._large_filled += count
            return
        self._start = 0
        self._end = len(self._kept) + count
        self._kept = b""

    def next_frame(self) -> memoryview | None:
        """The next whole frame without its size prefix, or None when there is none yet."""
        if self._large is not None:
            return self._finished_large()
        start = self._start
        available = self._end - start
        if available < PREFIX_BYTES:
            return None
        (size,) = _unpack_size(self._scratch, start)
        if not FRAME_BYTES_MIN <= size <= self._frame_bytes_max:
            raise FrameTooLarge(size, self._frame_bytes_max)
        start += PREFIX_BYTES
        end: int = start + size
        if end > self._end:
            return None
        self._start = end
        return self._scratch[start:end]

    def settle(self) -> None:
        """Ends the turn: what was not handed out is kept, and the scratch buffer is free again."""
        start, end = self._start, self._end
        self._start = self._end = 0
        available = end - start
        if available <= 0 or self._large is not None:
            return
        self._kept = bytes(self._scratch[start:end])
        if available >= PREFIX_BYTES:
            (size,) = _unpack_size(self._kept)
            if size > LARGE_FRAME_BYTES and available - PREFIX_BYTES < size:
                self.large_bytes = size

    def begin_large(self) -> None:
        """Gives the frame that `large_bytes` announces a buffer of its own."""
        received = memoryview(self._kept)[PREFIX_BYTES:]
        large = bytearray(min(self.large_bytes, EAGER_BYTES_MAX))
        large[: len(received)] = received
        self._kept = b""
        self._large, self._large_filled = large, len(received)

    def _finished_large(self) -> memoryview | None:
        large = self._large
        assert large is not None
        if self._large_filled == self.large_bytes:
            self._large = None
            self.large_bytes = 0
            return memoryview(large)
        if self._large_filled == len(large):
            grown = bytearray(min(self.large_bytes, 2 * len(large)))
            grown[: len(large)] = large
            self._large = grown
        return None
