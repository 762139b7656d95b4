"""Where a read begins and ends, as a person says it: earliest, latest, offsets or times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from ottla.errors import ConfigError
from ottla.model.ids import TopicPartition
from ottla.spark.offsets import EARLIEST, LATEST, Offsets, parse_offsets
from ottla.spark.options import OptionTexts, Use


class WithoutMatch(Enum):
    """What to do where no record is as young as the time that was given."""

    FAIL = "error"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a read. Offsets may be EARLIEST or LATEST."""

    everywhere: int | None = None
    """The same for all partitions: EARLIEST or LATEST."""
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    timestamp_ms: int | None = None
    timestamps_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    without_match: WithoutMatch = WithoutMatch.FAIL
    option: str = ""
    """Which option said so, for complaints."""

    @property
    def is_by_time(self) -> bool:
        """Whether the cluster must be asked which offsets these times are."""
        return self.timestamp_ms is not None or bool(self.timestamps_ms)


_WORDS: Final = {"earliest": EARLIEST, "latest": LATEST}
_STRATEGIES: Final = {each.value: each for each in WithoutMatch}


def starting_bound(texts: OptionTexts) -> Bound:
    """Where to begin; by default a stream at the end, and a batch at the beginning."""
    strategy = texts.one_of("startingOffsetsByTimestampStrategy", _STRATEGIES, WithoutMatch.FAIL)
    by_time = _by_time(texts, "starting", strategy)
    if by_time is not None:
        return by_time
    is_stream = texts.use is Use.STREAM_READ
    text = texts.text("startingOffsets") or ("latest" if is_stream else "earliest")
    bound = _by_offset("startingOffsets", text)
    if not is_stream and LATEST in (bound.everywhere, *bound.offsets.values()):
        raise ConfigError(
            "startingOffsets", "a batch cannot begin at the end", "use earliest, or offsets"
        )
    return bound


def ending_bound(texts: OptionTexts) -> Bound:
    """Where a batch ends."""
    by_time = _by_time(texts, "ending", WithoutMatch.LATEST)
    if by_time is not None:
        return by_time
    bound = _by_offset("endingOffsets", texts.text("endingOffsets") or "latest")
    if EARLIEST in (bound.everywhere, *bound.offsets.values()):
        raise ConfigError(
            "endingOffsets", "a batch cannot end at the beginning", "use latest, or offsets"
        )
    return bound


def _by_offset(option: str, text: str) -> Bound:
    word = _WORDS.get(text.strip().lower())
    if word is not None:
        return Bound(everywhere=word, option=option)
    return Bound(offsets=parse_offsets(option, text, least=EARLIEST), option=option)


def _by_time(texts: OptionTexts, end: str, strategy: WithoutMatch) -> Bound | None:
    single = f"{end}Timestamp"
    timestamp_ms = texts.number(single, at_least=0)
    if timestamp_ms is not None:
        return Bound(timestamp_ms=timestamp_ms, without_match=strategy, option=single)
    each = f"{end}OffsetsByTimestamp"
    text = texts.text(each)
    if text is None:
        return None
    times = parse_offsets(each, text, least=0)
    return Bound(timestamps_ms=times, without_match=strategy, option=each)


def check_covers(bound: Bound, partitions: set[TopicPartition]) -> None:
    """Refuses a bound that leaves out a partition or names one that is not read."""
    named = set(bound.timestamps_ms or bound.offsets)
    if not named or named == partitions:
        return
    missing, unknown = sorted(partitions - named), sorted(named - partitions)
    if unknown:
        problem = f"{unknown[0]} is not among the partitions that are read"
    else:
        problem = f"{missing[0]} is not in it"
    raise ConfigError(bound.option, problem, "name every partition; -2 is earliest, -1 latest")


def resolved(
    bound: Bound,
    ranges: Mapping[TopicPartition, tuple[int, int]],
    at_times: Mapping[TopicPartition, int],
) -> Offsets:
    """The offsets a bound means; `at_times` has -1 where no record is young enough."""
    found: Offsets = {}
    for where, (first, end) in ranges.items():
        if bound.is_by_time:
            offset = at_times[where]
            if offset < 0 and bound.without_match is WithoutMatch.FAIL:
                raise ConfigError(
                    bound.option,
                    f"{where} has no record so young",
                    "startingOffsetsByTimestampStrategy=latest begins at the end instead",
                )
        else:
            offset = bound.offsets.get(where, LATEST)
            offset = offset if bound.everywhere is None else bound.everywhere
        found[where] = first if offset == EARLIEST else end if offset < 0 else offset
    return found
