"""Lengths of time as people write them: `90s`, `15m`, `1h30m`."""

from __future__ import annotations

import re
from typing import Final

import click

_UNITS_MS: Final = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
_PART: Final = re.compile(r"(\d+)(ms|s|m|h|d|w)")
_WHOLE: Final = re.compile(r"(?:\d+(?:ms|s|m|h|d|w))+")
_SPOKEN: Final = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))


def parse_duration_ms(text: str) -> int | None:
    """The milliseconds; None where the text is no length of time."""
    if _WHOLE.fullmatch(text) is None:
        return None
    return sum(int(number) * _UNITS_MS[unit] for number, unit in _PART.findall(text))


def duration_text(duration_ms: int) -> str:
    """The two greatest units: `1h 5m`, `42s`."""
    seconds = max(0, duration_ms) // 1000
    parts = []
    for unit, size in _SPOKEN:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"


def duration_option(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """As a click callback: milliseconds out of text."""
    if value is None:
        return None
    duration_ms = parse_duration_ms(value.strip())
    if duration_ms is None:
        raise click.BadParameter(
            f"{value!r} is no length of time; write 90s, 15m, 1h30m or 2d.", ctx, param
        )
    return duration_ms
