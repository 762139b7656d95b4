"""When a suppressed table lets its updates go, as data."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.streams.windows import Duration, milliseconds


@dataclass(frozen=True, slots=True)
class Suppressed:
    """Updates of one key are held, and only the last of them is let go."""

    wait_ms: int | None
    """After this much stream time; None: when the update's window closes."""
    records_max: int | None = None
    bytes_max: int | None = None
    fails_when_full: bool = False

    def __str__(self) -> str:
        return "until windows close" if self.wait_ms is None else f"for {self.wait_ms} ms"


def until_window_closes(
    *, records_max: int | None = None, bytes_max: int | None = None
) -> Suppressed:
    """One final result for each window. Over a limit the application stops: it never lies."""
    return Suppressed(None, records_max, bytes_max, fails_when_full=True)


def until_time_limit(
    wait: Duration, *, records_max: int | None = None, bytes_max: int | None = None
) -> Suppressed:
    """At most one update a key every `wait`. Over a limit the oldest goes early."""
    return Suppressed(milliseconds(wait, "the time limit"), records_max, bytes_max)
