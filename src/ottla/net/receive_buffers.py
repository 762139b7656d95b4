"""The memory that bytes from clients arrive in, used again and again. Does not know frames.

Invariants:
1. All connections of a server read into one shared buffer, because one read is handled to its end
   before the next begins.
2. A connection in whose large frame a read ended may keep the shared buffer until the frame is
   whole: what has come is not moved, and others read into another one.
3. No more than `LENT_MAX` buffers are kept so at once; who gets none finds memory elsewhere.
"""

from __future__ import annotations

import mmap
from typing import Final

BUFFER_BYTES: Final = 1024 * 1024 + 64 * 1024
"""Holds the largest request that clients send by default, and the beginning of the next."""
LENT_MAX: Final = 8


class ReceiveBuffers:
    """The buffers of one server. They take memory only as far as bytes have come in them."""

    __slots__ = ("_lent", "_spare", "shared")

    def __init__(self) -> None:
        self.shared = _new_buffer()
        """Where bytes arrive, valid for one turn."""
        self._spare: list[memoryview] = []
        self._lent = 0

    def lend_shared(self) -> memoryview | None:
        """The shared buffer as it is, for as long as the caller likes; None where too many have
        one. Others share another from now on."""
        if self._lent >= LENT_MAX:
            return None
        self._lent += 1
        lent = self.shared
        self.shared = self._spare.pop() if self._spare else _new_buffer()
        return lent

    def give_back(self, buffer: memoryview) -> None:
        """The borrower has no use for it any more, nor for views of it."""
        self._lent -= 1
        self._spare.append(buffer)


def _new_buffer() -> memoryview:
    # Mapped, because a bytearray would be filled with zeros, and so take all its memory at once.
    return memoryview(mmap.mmap(-1, BUFFER_BYTES))
