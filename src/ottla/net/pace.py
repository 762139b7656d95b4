"""How fast a request comes in, and whether that is fast enough for the memory it holds."""

from __future__ import annotations

from typing import Final

LEAST_BYTES_PER_SECOND: Final = 16 * 1024
"""So 1 MiB, the most that clients send at once by default, may take 64 s. Their own timeout is
30 s: nobody waits for the answer any more."""
WINDOW_SECONDS: Final = 30.0
"""A request has come whole after so long, or as many bytes of it have come as the rate asks for."""
CROWDED_WINDOW_SECONDS: Final = 5.0
"""The same while others wait for the memory it holds."""


class Pace:
    """Looks at the bytes of one request now and then. Every window counts by itself: who sent much
    at first may not sit on it for the rest of the day."""

    __slots__ = ("_bytes", "_since")

    def __init__(self, now: float, request_bytes: int) -> None:
        self._since = now
        self._bytes = request_bytes

    def is_too_slow(self, now: float, request_bytes: int, *, are_others_waiting: bool) -> bool:
        """Whether too little has come since the window began; begins the next when it is over."""
        window = CROWDED_WINDOW_SECONDS if are_others_waiting else WINDOW_SECONDS
        passed = now - self._since
        if passed < window:
            return False
        if request_bytes - self._bytes < passed * LEAST_BYTES_PER_SECOND:
            return True
        self._since = now
        self._bytes = request_bytes
        return False
