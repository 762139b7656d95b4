"""Where to begin reading, as people say it: `beginning`, an offset, the last few, an hour ago."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ottla.cli.duration import parse_duration_ms
from ottla.cli.moment import parse_moment_ms
from ottla.errors import ConfigError
from ottla.model.ids import Offset

_FIX: Final = (
    "write beginning, end, an offset (42), the last records of each partition (-10), "
    "an age (-1h, -30m), a time (2026-01-31T12:00) or milliseconds since 1970 (@1767225600000)"
)

_NUMBER: Final = r"\d{1,18}"
"""What the protocol can carry: an offset or a time of more digits is a slip of the hand."""


class StartKind(Enum):
    """How a starting point is meant."""

    BEGINNING = "beginning"
    END = "end"
    OFFSET = "offset"
    LAST = "last"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class StartingPoint:
    """Where to begin; `number` is an offset, a count or milliseconds since 1970, by the kind."""

    kind: StartKind
    number: int = 0


BEGINNING: Final = StartingPoint(StartKind.BEGINNING)
END: Final = StartingPoint(StartKind.END)
_WORDS: Final = {
    "beginning": BEGINNING,
    "earliest": BEGINNING,
    "start": BEGINNING,
    "end": END,
    "latest": END,
}


def parse_starting_point(text: str, *, now_ms: int, option: str = "--from") -> StartingPoint:
    """Reads a starting point; ConfigError, with all that is possible, for anything else."""
    plain = text.strip()
    if plain.lower() in _WORDS:
        return _WORDS[plain.lower()]
    if re.fullmatch(_NUMBER, plain):
        return StartingPoint(StartKind.OFFSET, int(plain))
    if re.fullmatch("-" + _NUMBER, plain):
        return StartingPoint(StartKind.LAST, -int(plain))
    if re.fullmatch("@" + _NUMBER, plain):
        return StartingPoint(StartKind.TIME, int(plain[1:]))
    age_ms = parse_duration_ms(plain[1:]) if plain.startswith("-") else None
    if age_ms is not None:
        return StartingPoint(StartKind.TIME, max(0, now_ms - age_ms))
    time_ms = parse_moment_ms(plain)
    if time_ms is None:
        raise ConfigError(option, f"{text!r} is no place to begin", _FIX)
    return StartingPoint(StartKind.TIME, max(0, time_ms))


def resolve(
    start: StartingPoint,
    ranges: Mapping[int, tuple[Offset, Offset]],
    at_time: Mapping[int, Offset],
) -> dict[int, Offset]:
    """The first offset to read in each partition, within its range.

    `at_time` has the first offset at or after the moment, for those partitions that have one.
    """
    return {
        partition: _resolve_one(start, range_, at_time.get(partition))
        for partition, range_ in ranges.items()
    }


def _resolve_one(
    start: StartingPoint, range_: tuple[Offset, Offset], at_time: Offset | None
) -> Offset:
    first, end = range_
    match start.kind:
        case StartKind.BEGINNING:
            return first
        case StartKind.END:
            return end
        case StartKind.OFFSET:
            return Offset(min(max(start.number, first), end))
        case StartKind.LAST:
            return Offset(max(first, end - start.number))
        case StartKind.TIME:
            return end if at_time is None else at_time
