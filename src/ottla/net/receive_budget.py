"""How many bytes of large requests may be on their way in at once, over all connections.

Invariants:
1. A request holds what has come of it and room for as much again, never what it announced.
2. A part is kept for requests of the size that clients send by default: longer ones cannot take it,
   so these never wait behind them.
3. Of the longer ones under way, the one that began first may always go on, past the limit if need
   be: else each could hold a part, and all of them wait for the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from ottla.net.receive_buffers import BUFFER_BYTES

KEPT_SHARE: Final = 4
"""One part in so many is kept for requests up to `BUFFER_BYTES`."""


class Room:
    """What one request holds of the budget. `granted` is called when what it waits for is there."""

    __slots__ = ("granted", "held_bytes", "is_long", "wanted_bytes")

    def __init__(self, request_bytes: int, granted: Callable[[], None]) -> None:
        self.is_long = request_bytes > BUFFER_BYTES
        self.granted = granted
        self.held_bytes = 0
        self.wanted_bytes = 0
        """What it stands in line for; 0 if it does not."""


class ReceiveBudget:
    """Room for large requests. Who gets none waits in line, not read from until its turn."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._kept_bytes = bytes_max // KEPT_SHARE
        self._long_bytes = 0
        self._usual_bytes = 0
        self._long_line: deque[Room] = deque()
        self._usual_line: deque[Room] = deque()
        self._long_holders: dict[Room, None] = {}
        """In the order in which they began."""

    @property
    def reserved_bytes(self) -> int:
        return self._long_bytes + self._usual_bytes

    @property
    def is_waited_for(self) -> bool:
        """Whether somebody stands in line."""
        return bool(self._long_line or self._usual_line)

    def has_room(self, size_bytes: int) -> bool:
        """Whether a request of the usual size could reserve so much now."""
        return not self._usual_line and self._fits_usual(size_bytes)

    def reserve(self, room: Room, size_bytes: int) -> bool:
        """Takes `size_bytes` more; if there are not so many, stands in line for them."""
        line = self._long_line if room.is_long else self._usual_line
        if self._may_go_on(room) or (not line and self._fits(room, size_bytes)):
            self._take(room, size_bytes)
            return True
        room.wanted_bytes = size_bytes
        line.append(room)
        return False

    def release(self, room: Room) -> None:
        """Gives everything back, a place in the line too, and lets in whom it suffices for."""
        if room.wanted_bytes:
            room.wanted_bytes = 0
            (self._long_line if room.is_long else self._usual_line).remove(room)
        size_bytes, room.held_bytes = room.held_bytes, 0
        if room.is_long:
            self._long_holders.pop(room, None)
            self._long_bytes -= size_bytes
        else:
            self._usual_bytes -= size_bytes
        if self._long_line or self._usual_line:
            self._let_in()

    def _let_in(self) -> None:
        admitted: list[Room] = []
        usual, long = self._usual_line, self._long_line
        while usual and self._fits(usual[0], usual[0].wanted_bytes):
            admitted.append(self._leave_line(usual, usual[0]))
        first = next(iter(self._long_holders), None)
        if first is not None and first.wanted_bytes:
            admitted.append(self._leave_line(long, first))
        while long and self._fits(long[0], long[0].wanted_bytes):
            admitted.append(self._leave_line(long, long[0]))
        # Called last: each may reserve and release in turn.
        for room in admitted:
            room.granted()

    def _leave_line(self, line: deque[Room], room: Room) -> Room:
        line.remove(room)
        size_bytes, room.wanted_bytes = room.wanted_bytes, 0
        self._take(room, size_bytes)
        return room

    def _take(self, room: Room, size_bytes: int) -> None:
        room.held_bytes += size_bytes
        if room.is_long:
            self._long_holders[room] = None
            self._long_bytes += size_bytes
        else:
            self._usual_bytes += size_bytes

    def _may_go_on(self, room: Room) -> bool:
        return room in self._long_holders and next(iter(self._long_holders)) is room

    def _fits(self, room: Room, size_bytes: int) -> bool:
        if not room.is_long:
            return self._fits_usual(size_bytes)
        others = max(self._usual_bytes, self._kept_bytes)
        return not self._long_holders or self._long_bytes + others + size_bytes <= self._bytes_max

    def _fits_usual(self, size_bytes: int) -> bool:
        held = self._usual_bytes
        return (
            not held
            or held + size_bytes <= self._kept_bytes
            or self._long_bytes + held + size_bytes <= self._bytes_max
        )
