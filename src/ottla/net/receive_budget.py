"""How many bytes of large requests may be on their way in at once, over all connections."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class ReceiveBudget:
    """Reservations for large frames. Who gets none waits in line, not read from until its turn.

    One frame is let in whatever its size while nothing else is reserved, so that a limit below the
    largest request stops nobody for ever.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._reserved_bytes = 0
        self._line: deque[tuple[int, Callable[[], None]]] = deque()

    @property
    def reserved_bytes(self) -> int:
        return self._reserved_bytes

    def reserve(self, size_bytes: int) -> bool:
        """Takes `size_bytes` if nobody stands in line for room and there is enough."""
        if not self.has_room(size_bytes):
            return False
        self._reserved_bytes += size_bytes
        return True

    def has_room(self, size_bytes: int) -> bool:
        """Whether `size_bytes` could be reserved now."""
        return not self._line and self._fits(size_bytes)

    def wait(self, size_bytes: int, granted: Callable[[], None]) -> None:
        """Stands in line; `granted` is called once the bytes are reserved."""
        self._line.append((size_bytes, granted))

    def leave(self, granted: Callable[[], None]) -> None:
        """Gives up a place in the line."""
        self._line = deque(waiting for waiting in self._line if waiting[1] != granted)

    def release(self, size_bytes: int) -> None:
        """Gives bytes back, and lets in whom they suffice for."""
        self._reserved_bytes -= size_bytes
        while self._line and self._fits(self._line[0][0]):
            size, granted = self._line.popleft()
            self._reserved_bytes += size
            granted()

    def _fits(self, size_bytes: int) -> bool:
        return not self._reserved_bytes or self._reserved_bytes + size_bytes <= self._bytes_max
