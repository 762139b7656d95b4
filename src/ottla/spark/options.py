"""The options of `format("ottla")`: their names, and from their texts to typed values.

The names are those of Spark's own Kafka connector, upper and lower case alike; `kafka.*` goes to
the clients. A name nobody declared is refused with the nearest one, a value that makes no sense
with what would.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar

from ottla.errors import ConfigError

KAFKA: Final = "kafka."
BOOTSTRAP: Final = "kafka.bootstrap.servers"
DELAY_MS_DEFAULT: Final = 15 * 60 * 1000
_FROM_SPARK: Final = frozenset({"checkpointlocation", "queryname", "path", "outputmode"})
"""What Spark itself puts among the options."""


class Use(Enum):
    """What the options are for."""

    READ = "a batch read"
    STREAM_READ = "a streaming read"
    WRITE = "a batch write"
    STREAM_WRITE = "a streaming write"


READING: Final = (Use.READ, Use.STREAM_READ)
WRITING: Final = (Use.WRITE, Use.STREAM_WRITE)

DECLARED: Final[Mapping[str, tuple[Use, ...]]] = {
    "subscribe": READING,
    "subscribePattern": READING,
    "assign": READING,
    "startingOffsets": READING,
    "startingOffsetsByTimestamp": READING,
    "startingTimestamp": READING,
    "startingOffsetsByTimestampStrategy": READING,
    "endingOffsets": (Use.READ,),
    "endingOffsetsByTimestamp": (Use.READ,),
    "endingTimestamp": (Use.READ,),
    "failOnDataLoss": READING,
    "includeHeaders": (*READING, *WRITING),
    "pushFilters": (Use.READ,),
    "minPartitions": READING,
    "maxRecordsPerPartition": READING,
    "maxOffsetsPerTrigger": (Use.STREAM_READ,),
    "minOffsetsPerTrigger": (Use.STREAM_READ,),
    "maxTriggerDelay": (Use.STREAM_READ,),
    "idleWaitMs": (Use.STREAM_READ,),
    "groupIdPrefix": READING,
    "group.id": READING,
    "kafkaConsumer.pollTimeoutMs": READING,
    "fetchOffset.numRetries": READING,
    "fetchOffset.retryIntervalMs": READING,
    "topic": WRITING,
    "delivery": WRITING,
    "transactionalId": WRITING,
    "stagingDirectory": WRITING,
    "batchId": (Use.WRITE,),
    "bootstrap.servers": (*READING, *WRITING),
}
"""Every option, and where it means something."""
WITHOUT_EFFECT: Final = frozenset(
    {
        "groupidprefix",
        "kafkaconsumer.polltimeoutms",
        "fetchoffset.numretries",
        "fetchoffset.retryintervalms",
    }
)
"""Taken so that a job moves by changing one word: the clients here have other ways."""
_REFUSED_KAFKA: Final = {
    "kafka.auto.offset.reset": "use startingOffsets, which the query remembers",
    "kafka.enable.auto.commit": "leave it out: a query commits each finished micro-batch",
    "kafka.transactional.id": "use transactionalId",
    "kafka.enable.idempotence": "leave it out: it is always on",
}

T = TypeVar("T")


class OptionTexts:
    """The options a person wrote for one use, checked by name, not yet by value."""

    __slots__ = ("_texts", "use")

    def __init__(self, use: Use, options: Mapping[str, str]) -> None:
        self.use = use
        self._texts = {name.lower(): text for name, text in options.items()}
        for name in self._texts:
            _check_name(name, use)
        if BOOTSTRAP not in self._texts and "bootstrap.servers" not in self._texts:
            raise ConfigError(BOOTSTRAP, "is missing", 'give it as option, say "localhost:9092"')

    def text(self, name: str) -> str | None:
        """What was written for an option; None where nothing was."""
        return self._texts.get(name.lower())

    def number(self, name: str, *, at_least: int = 1) -> int | None:
        """A whole number; None where nothing was written."""
        text = self.text(name)
        if text is None:
            return None
        try:
            number = int(text)
        except ValueError:
            raise ConfigError(name, f"{text!r} is not a whole number") from None
        if number < at_least:
            raise ConfigError(name, f"{number} is too small", f"{at_least} is the least")
        return number

    def flag(self, name: str, *, default: bool) -> bool:
        """true or false."""
        text = self.text(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise ConfigError(name, f"{text!r} is neither true nor false")
        return text.lower() == "true"

    def one_of(self, name: str, choices: Mapping[str, T], default: T) -> T:
        """One of some words."""
        text = self.text(name)
        if text is None:
            return default
        if text.lower() not in choices:
            raise ConfigError(name, f"there is no {text!r}", f"use {' or '.join(choices)}")
        return choices[text.lower()]

    def kafka(self) -> dict[str, str]:
        """What goes to the clients, under Kafka's names."""
        found = {
            name.removeprefix(KAFKA): text
            for name, text in self._texts.items()
            if name.startswith(KAFKA)
        }
        plain = self.text("bootstrap.servers")
        if plain is not None:
            found.setdefault("bootstrap.servers", plain)
        return found


_DURATION: Final = re.compile(r"\s*(\d+)\s*(ms|[a-z]+?)s?\s*$")
_UNITS_MS: Final = {
    "ms": 1,
    "millisecond": 1,
    "": 1_000,
    "second": 1_000,
    "sec": 1_000,
    "m": 60_000,
    "min": 60_000,
    "minute": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
}


def duration_ms(name: str, text: str) -> int:
    """A time as Spark writes it: 15m, 10 seconds, 1h."""
    found = _DURATION.match(text.lower())
    unit = found.group(2) if found else None
    if found is None or (unit not in _UNITS_MS and unit != "s"):
        raise ConfigError(name, f"{text!r} is not a time", "write it as 30s, 15m or 2h")
    return int(found.group(1)) * (1_000 if unit == "s" else _UNITS_MS[str(unit)])


@dataclass(frozen=True, slots=True)
class TriggerLimits:
    """How much a micro-batch takes at most, and what it waits for at least."""

    offsets_max: int | None = None
    offsets_min: int | None = None
    delay_ms_max: int = DELAY_MS_DEFAULT
    """A micro-batch waits no longer than this for the least number of offsets."""


def trigger_limits(texts: OptionTexts) -> TriggerLimits:
    """The limits, where they go together."""
    most, least = texts.number("maxOffsetsPerTrigger"), texts.number("minOffsetsPerTrigger")
    if most is not None and least is not None and least > most:
        raise ConfigError(
            "minOffsetsPerTrigger", f"{least} is more than maxOffsetsPerTrigger, {most}"
        )
    delay = texts.text("maxTriggerDelay")
    if delay is None:
        return TriggerLimits(most, least)
    return TriggerLimits(most, least, duration_ms("maxTriggerDelay", delay))


def _check_name(name: str, use: Use) -> None:
    if name in _FROM_SPARK:
        return
    if name in _REFUSED_KAFKA:
        raise ConfigError(name, "cannot be set here", _REFUSED_KAFKA[name])
    if name.startswith(KAFKA):
        return
    declared = {known.lower(): known for known in DECLARED}
    if name not in declared:
        raise ConfigError(name, f"is not an option of {use.value}", _nearest(name, use))
    uses = DECLARED[declared[name]]
    if use not in uses:
        places = " and ".join(each.value for each in uses)
        raise ConfigError(declared[name], f"means nothing for {use.value}", f"it is for {places}")


def _nearest(name: str, use: Use) -> str:
    from difflib import get_close_matches  # seldom needed, and slow to import

    known: Iterable[str] = [option for option, uses in DECLARED.items() if use in uses]
    by_lower = {option.lower(): option for option in (*known, BOOTSTRAP)}
    near = get_close_matches(name, list(by_lower), n=1, cutoff=0.5)
    if near:
        return f"did you mean {by_lower[near[0]]}?"
    return "docs/spark.md lists the options; those of the clients begin with kafka."
