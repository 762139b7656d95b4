"""A limit on bytes a second that may change at any time. Pure: time comes in as numbers."""

from __future__ import annotations

from typing import Final

from ottla.settings.declare import LONG_MAX

UNLIMITED: Final = LONG_MAX


class Throttle:
    """Lets bytes pass while fewer have passed than the rate allows, with up to a second's worth at
    once. What passes is counted when it has passed, so that one large piece may overdraw it; the
    next then waits the longer."""

    __slots__ = ("_counted_ms", "_left")

    def __init__(self) -> None:
        self._counted_ms: int | None = None
        self._left = 0.0

    def may_pass(self, bytes_per_second: int, now_ms: int) -> bool:
        """Whether the next bytes may go."""
        if bytes_per_second >= UNLIMITED:
            return True
        if self._counted_ms is None:
            self._left = float(bytes_per_second)
        else:
            grown = self._left + (now_ms - self._counted_ms) * bytes_per_second / 1000
            self._left = min(grown, float(bytes_per_second))
        self._counted_ms = now_ms
        return self._left > 0

    def passed(self, size_bytes: int) -> None:
        """So many bytes went."""
        if self._counted_ms is not None:
            self._left -= size_bytes


def is_throttled(replicas: tuple[str, ...], index: int, broker: int) -> bool:
    """Whether a topic's list (partition:broker, or *) has a broker's replica of a partition."""
    return bool(replicas) and ("*" in replicas or f"{index}:{broker}" in replicas)
