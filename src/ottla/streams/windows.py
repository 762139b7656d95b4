"""The kinds of windows, as data, and which windows a time falls into.

Durations are `timedelta`s or whole milliseconds. Grace is how long after its end a window still
takes late records; the default is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from ottla.streams.failures import TopologyError

Duration = timedelta | int


def milliseconds(duration: Duration, what: str, *, least: int = 0) -> int:
    """A duration as milliseconds; refuses what is shorter than `least`."""
    if isinstance(duration, timedelta):
        duration = duration // timedelta(milliseconds=1)
    if isinstance(duration, bool) or not isinstance(duration, int):
        raise TopologyError(f"{what} must be a timedelta or whole milliseconds, not {duration!r}")
    if duration < least:
        raise TopologyError(f"{what} must be at least {least} ms, not {duration}")
    return duration


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """Windows [start, start + size) that begin every `advance_ms`, aligned to the epoch."""

    size_ms: int
    advance_ms: int
    grace_ms: int

    def starts_for(self, timestamp_ms: int) -> range:
        """The starts of all windows the time falls into, the earliest first."""
        advance_ms = self.advance_ms
        first = max(0, timestamp_ms - self.size_ms + advance_ms) // advance_ms * advance_ms
        return range(first, timestamp_ms + 1, advance_ms)

    def __str__(self) -> str:
        kind = (
            "tumbling" if self.size_ms == self.advance_ms else f"hopping by {self.advance_ms} ms,"
        )
        return f"{kind} windows of {self.size_ms} ms, grace {self.grace_ms} ms"


@dataclass(frozen=True, slots=True)
class SlidingWindows:
    """Windows [start, start + difference], one wherever the set of records in it changes."""

    difference_ms: int
    grace_ms: int

    def __str__(self) -> str:
        return f"sliding windows of {self.difference_ms} ms, grace {self.grace_ms} ms"


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """Windows [first, last] of records that are never more than `gap_ms` apart."""

    gap_ms: int
    grace_ms: int

    def __str__(self) -> str:
        return f"sessions with gaps of {self.gap_ms} ms, grace {self.grace_ms} ms"


@dataclass(frozen=True, slots=True)
class JoinWindows:
    """How far the right record of a join may be before and after the left one."""

    before_ms: int
    after_ms: int
    grace_ms: int

    @property
    def retention_ms(self) -> int:
        """How long a record may be needed."""
        return self.before_ms + self.after_ms + self.grace_ms

    def __str__(self) -> str:
        return f"{self.before_ms} ms before to {self.after_ms} ms after, grace {self.grace_ms} ms"


AnyWindows = TimeWindows | SlidingWindows | SessionWindows


def tumbling(size: Duration, *, grace: Duration = 0) -> TimeWindows:
    """Windows that follow each other without a gap: every record is in one."""
    size_ms = milliseconds(size, "a window's size", least=1)
    return TimeWindows(size_ms, size_ms, milliseconds(grace, "grace"))


def hopping(size: Duration, advance: Duration, *, grace: Duration = 0) -> TimeWindows:
    """Windows that overlap: a new one begins every `advance`."""
    size_ms = milliseconds(size, "a window's size", least=1)
    advance_ms = milliseconds(advance, "a window's advance", least=1)
    if advance_ms > size_ms:
        raise TopologyError(f"windows of {size_ms} ms cannot advance by {advance_ms} ms: gaps")
    return TimeWindows(size_ms, advance_ms, milliseconds(grace, "grace"))


def sliding(difference: Duration, *, grace: Duration = 0) -> SlidingWindows:
    """Windows of all records that are at most `difference` apart."""
    return SlidingWindows(
        milliseconds(difference, "the time difference"), milliseconds(grace, "grace")
    )


def session(gap: Duration, *, grace: Duration = 0) -> SessionWindows:
    """Windows that end after `gap` without a record."""
    return SessionWindows(
        milliseconds(gap, "a session's gap", least=1), milliseconds(grace, "grace")
    )


def join_within(
    difference: Duration,
    *,
    before: Duration | None = None,
    after: Duration | None = None,
    grace: Duration = 0,
) -> JoinWindows:
    """Joins records at most `difference` apart; `before` and `after` set one side of their own."""
    before_ms = milliseconds(difference if before is None else before, "before", least=-(2**62))
    after_ms = milliseconds(difference if after is None else after, "after", least=-(2**62))
    if before_ms + after_ms < 0:
        raise TopologyError("a join window must not end before it begins: before + after < 0")
    return JoinWindows(before_ms, after_ms, milliseconds(grace, "grace"))
