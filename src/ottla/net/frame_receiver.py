"""Cuts a stream of bytes into size-prefixed frames, in place. Does not know sockets or messages.

Invariants:
1. Connections at rest own no buffer: bytes arrive in one that all connections of a server share.
2. A frame is a view valid until the end of the turn that received it.
3. A large frame gets a buffer by `begin_large`, when so much of it has come that it is meant, and
   its owner has room for it: the shared one as it is, if that can be had and the frame fits in;
   else one of its own, which grows by `grow_large` with the bytes that came, not with the size it
   announced.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ottla.errors import FrameTooLarge
from ottla.net.receive_buffers import BUFFER_BYTES, ReceiveBuffers

READ_BYTES_MAX: Final = 256 * 1024
"""So much is read at once, except from a client that has sent larger frames before."""
LARGE_FRAME_BYTES: Final = 64 * 1024
"""A frame of which more than this has come, and which is not complete, gets a buffer of its own."""
FRAME_BYTES_MIN: Final = 8
PREFIX_BYTES: Final = 4

_unpack_size = Struct(">i").unpack_from


class FrameReceiver:
    """The receiving half of one connection."""

    __slots__ = (
        "_borrowed",
        "_buffers",
        "_end",
        "_frame_bytes_max",
        "_kept",
        "_large",
        "_large_filled",
        "_large_start",
        "_start",
        "expects_large",
        "large_bytes",
    )

    def __init__(self, buffers: ReceiveBuffers, frame_bytes_max: int) -> None:
        self._buffers = buffers
        self._frame_bytes_max = frame_bytes_max
        self._kept = b""
        self._start = 0
        self._end = 0
        self._borrowed: memoryview | None = None
        self._large: memoryview | None = None
        self._large_start = 0
        self._large_filled = 0
        self.large_bytes = 0
        """The size of a large frame that has begun to come; 0 where there is none."""
        self.expects_large = False
        """Whether the client has sent a large frame before, and is likely to send another."""

    @property
    def has_buffer(self) -> bool:
        """Whether a large frame is coming into a buffer of its own."""
        return self._large is not None

    @property
    def has_more(self) -> bool:
        """Whether bytes are left that came with the frame handed out last."""
        return self._start < self._end

    @property
    def missing_bytes(self) -> int:
        """How much more memory the large frame needs before anything more can come; mostly 0."""
        large = self._large
        if large is None:
            return self._first_size() if self.large_bytes else 0
        if self._borrowed is not None or self._large_filled < len(large):
            return 0
        return min(self.large_bytes, 2 * len(large)) - len(large)

    @property
    def kept_bytes(self) -> int:
        """Received bytes that are held until more come or the connection may go on."""
        return self._large_filled if self._large is not None else len(self._kept)

    def buffer(self, bytes_max: int = READ_BYTES_MAX) -> memoryview:
        """Where the next bytes go, up to `bytes_max` unless it is known how many are to come.

        Asking changes nothing: the read may still fail.
        """
        large = self._large
        if large is not None:
            start = self._large_start
            return large[start + self._large_filled : start + self.large_bytes]
        kept = self._kept
        if kept:
            size = len(kept)
            self._buffers.shared[:size] = kept
            return self._buffers.shared[size : size + bytes_max]
        return self._buffers.shared[:bytes_max]

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
            return self._finished_large(self._large)
        start = self._start
        available = self._end - start
        if available < PREFIX_BYTES:
            return None
        shared = self._buffers.shared
        size: int = _unpack_size(shared, start)[0]
        if not FRAME_BYTES_MIN <= size <= self._frame_bytes_max:
            raise FrameTooLarge(size, self._frame_bytes_max)
        start += PREFIX_BYTES
        end = start + size
        if end > self._end:
            return None
        self._start = end
        return shared[start:end]

    def settle(self) -> bool:
        """Ends the turn: what was not handed out is kept, and the shared buffer is free again.

        True where a large frame has begun to come that has no buffer yet: then `begin_large` or
        `keep` must follow at once, as what has come of it is still in the shared buffer.
        """
        if self._borrowed is not None and self._large is None:
            self._give_back(self._borrowed)
        start = self._start
        available = self._end - start
        if available >= PREFIX_BYTES:
            (size,) = _unpack_size(self._buffers.shared, start)
            is_whole = size <= available - PREFIX_BYTES
            if available > LARGE_FRAME_BYTES and size <= self._frame_bytes_max and not is_whole:
                self.large_bytes = size
                return True
        if available:
            self.keep()
        return False

    def keep(self) -> None:
        """Takes what was not handed out from the shared buffer."""
        self._kept = bytes(self._buffers.shared[self._start : self._end])
        self._start = self._end = 0

    def begin_large(self) -> None:
        """Gives the frame that `large_bytes` announces a buffer."""
        self.expects_large = True
        start, kept = self._start, self._kept
        received = memoryview(kept) if kept else self._buffers.shared[start : self._end]
        received = received[PREFIX_BYTES:]
        size = self._first_size()
        self._start = self._end = 0
        self._kept = b""
        self._large_filled = len(received)
        self._borrowed = self._borrow()
        if self._borrowed is None:
            self._large = memoryview(bytearray(size))
            self._large_start = 0
        else:
            self._large = self._borrowed
            self._large_start = start + PREFIX_BYTES
            if not kept and self._large_start + self.large_bytes <= BUFFER_BYTES:
                return  # It goes on where it began.
            self._large_start = 0
        self._large[: len(received)] = received

    def grow_large(self) -> None:
        """Gives the large frame the memory it is missing."""
        large = self._large
        assert large is not None
        grown = bytearray(len(large) + self.missing_bytes)
        grown[: len(large)] = large
        self._large = memoryview(grown)

    def close(self) -> None:
        """Nothing more will come."""
        if self._borrowed is not None:
            self._give_back(self._borrowed)
        self._large = None

    def _first_size(self) -> int:
        """A frame of the usual size gets all its memory at once; one read may bring more of it."""
        come = len(self._kept) or self._end - self._start
        return min(self.large_bytes, max(BUFFER_BYTES, 2 * come))

    def _borrow(self) -> memoryview | None:
        return self._buffers.lend_shared() if self.large_bytes <= BUFFER_BYTES else None

    def _give_back(self, borrowed: memoryview) -> None:
        self._borrowed = None
        self._buffers.give_back(borrowed)

    def _finished_large(self, large: memoryview) -> memoryview | None:
        start, size = self._large_start, self.large_bytes
        if self._large_filled == size:
            self._large = None
            self.large_bytes = 0
            return large[start : start + size]
        return None
