"""Moments as people write them: `2026-01-31T12:00`, in ISO 8601."""

from __future__ import annotations

from datetime import datetime


def parse_moment_ms(text: str) -> int | None:
    """Milliseconds since 1970, by the machine's time zone where none is said; None where the text
    is no moment."""
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
