"""Memory for large frames, used again once nobody looks at what it held.

Fresh memory costs more than the bytes that come in: the allocator clears it, and the kernel hands
it out page by page. Nobody has to give a buffer back. A frame is handed out as a view, decoded
messages are views of that, and a bytearray of which there are views refuses to change its size:
that is how one that is free is told from one that is not.

Invariant: between `take` and the end of the last view, a buffer is never handed out again.
"""

from __future__ import annotations

from typing import Final

POOLED_BYTES_MIN: Final = 128 * 1024
"""Smaller frames come from the allocator, which keeps that much at hand itself."""
POOL_BYTES_MAX: Final = 24 * 1024 * 1024
"""What a connection keeps at most, in use or not."""
_ROUNDING_BYTES: Final = 256 * 1024


class FramePool:
    """The buffers of one connection."""

    __slots__ = ("_buffers", "_bytes")

    def __init__(self) -> None:
        self._buffers: list[bytearray] = []
        self._bytes = 0

    def take(self, size: int) -> memoryview:
        """Room for a frame of `size` bytes; what it holds at first is not said."""
        if size < POOLED_BYTES_MIN:
            return memoryview(bytearray(size))
        buffers = self._buffers
        for buffer in buffers:
            if len(buffer) >= size and _is_free(buffer):
                return memoryview(buffer)[:size]
        made = bytearray(-(-size // _ROUNDING_BYTES) * _ROUNDING_BYTES)
        self._keep(made)
        return memoryview(made)[:size]

    def _keep(self, made: bytearray) -> None:
        """Keeps the new one where there is room, if need be instead of smaller ones."""
        buffers = self._buffers
        while buffers and self._bytes + len(made) > POOL_BYTES_MAX and len(buffers[0]) < len(made):
            self._bytes -= len(buffers.pop(0))
        if self._bytes + len(made) <= POOL_BYTES_MAX:
            buffers.append(made)
            buffers.sort(key=len)
            self._bytes += len(made)


def _is_free(buffer: bytearray) -> bool:
    try:
        last = buffer.pop()
    except BufferError:
        return False
    buffer.append(last)  # within what was allocated: nothing is copied
    return True
