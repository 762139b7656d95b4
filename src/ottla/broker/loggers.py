"""The loggers of this process and how much each of them tells, in Apache Kafka's names for levels.

A level lasts until the process ends: it is for looking closer at a broker that runs, not a setting.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from ottla.cluster.config_changes import Alteration, AlterOperation, once_each
from ottla.errors import InvalidConfig, InvalidRequest
from ottla.settings.declare import Declared, Kind, Setting
from ottla.settings.describe import ConfigSource, DescribedSetting

ROOT: Final = "root"
OURS: Final = "ottla"
LEVELS: Final = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG - 5,
}
"""From what tells least to what tells most. Nothing here tells more at TRACE than at DEBUG."""


def describe_loggers() -> list[DescribedSetting]:
    """Every logger with the level in force, be it its own or that of one above it."""
    return [
        DescribedSetting(
            Declared(Setting(logger.name, Kind.STRING, one_of=tuple(LEVELS)), "", None, ""),
            _level_name(logger.getEffectiveLevel()),
            ConfigSource.DYNAMIC_BROKER_LOGGER,
            is_read_only=False,
            synonyms=(),
        )
        for logger in _loggers()
    ]


def alter_loggers(alterations: Sequence[Alteration], *, validate_only: bool) -> None:
    """Gives loggers levels of their own, or takes these from them: all, or none if one is wrong."""
    known = {logger.name: logger for logger in _loggers()}
    wanted = {each.name: _wanted_level(each, known) for each in once_each(alterations)}
    if validate_only:
        return
    for name, level in wanted.items():
        known[name].setLevel(level)


def _loggers() -> Iterable[logging.Logger]:
    yield logging.root
    for name in sorted(logging.root.manager.loggerDict):
        if name.partition(".")[0] == OURS:  # or a package, which has a logger once it is asked for
            yield logging.getLogger(name)


def _wanted_level(alteration: Alteration, known: dict[str, logging.Logger]) -> int:
    name = alteration.name
    if name not in known:
        raise InvalidConfig(f"there is no logger {name!r}")
    match alteration.operation:
        case AlterOperation.SET:
            level = LEVELS.get(alteration.value or "")
            if level is None:
                one_of = ", ".join(LEVELS)
                raise InvalidConfig(f"{alteration.value!r} is no level for a logger; {one_of} are")
            return level
        case AlterOperation.DELETE:
            if name == ROOT:
                raise InvalidRequest(
                    "the root logger must have a level: it can be set, not deleted"
                )
            return logging.NOTSET
        case AlterOperation.APPEND | AlterOperation.SUBTRACT:
            raise InvalidRequest("a level is no list: it can be set or deleted, not added to")


def _level_name(level: int) -> str:
    """The name of a level, or of the next above one that has none."""
    return next(
        (name for name, known in reversed(LEVELS.items()) if known >= level), next(iter(LEVELS))
    )
