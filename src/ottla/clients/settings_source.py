"""From what a person writes to a client's settings: keywords, a dict of Kafka's names, a file.

Keywords are the names with underscores, `linger_ms`; Kafka's dotted ones are taken from a mapping
or a file. A name nobody declared is refused with the nearest one; names that only mean something
to a JVM are passed over, so that an existing properties file works as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from ottla.errors import ConfigError
from ottla.settings.declare import Declared, Value, declarations, render
from ottla.settings.sources import read_file

Config = Mapping[str, object] | str | Path | None
"""A mapping of names, or the path of a .properties or .toml file."""

T = TypeVar("T")

_log = logging.getLogger("ottla.clients")

JVM_ONLY: Final = frozenset(
    {
        "key.serializer",
        "value.serializer",
        "key.deserializer",
        "value.deserializer",
        "partitioner.class",
        "interceptor.classes",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.sample.window.ms",
        "metrics.recording.level",
        "auto.include.jmx.reporter",
        "enable.metrics.push",
        "send.buffer.bytes",
        "receive.buffer.bytes",
        "client.dns.lookup",
        "connections.max.idle.ms",
        "reconnect.backoff.ms",
        "reconnect.backoff.max.ms",
        "socket.connection.setup.timeout.max.ms",
        "metadata.max.idle.ms",
        "metadata.recovery.strategy",
        "metadata.recovery.rebootstrap.trigger.ms",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "security.providers",
        "config.providers",
    }
)
"""Accepted and without effect: Python objects are given for these, or nothing depends on them."""


class SettingsSource:
    """The names and texts a person gave for one kind of client, not yet read."""

    __slots__ = ("_given", "_scope")

    def __init__(self, scope: str, config: Config, keywords: Mapping[str, object]) -> None:
        self._scope = scope
        self._given: dict[str, object] = {}
        from_config = read_file(Path(config)) if isinstance(config, str | Path) else config or {}
        if not isinstance(from_config, Mapping):
            raise ConfigError(
                "config", f"{config!r} is refused", "give a mapping of names, or the path of a file"
            )
        for name, value in (*from_config.items(), *keywords.items()):
            self._given[name.replace("_", ".")] = value

    def check_names(self, classes: Iterable[type]) -> None:
        """Refuses a name that none of the settings classes declares."""
        known = {each.name for settings in classes for each in declarations(settings)}
        for name in self._given:
            if name in known:
                continue
            if name not in JVM_ONLY:
                raise _unknown(name, known, self._scope)
            _log.info("setting %s has no effect on a client in Python", name)

    def read(self, settings_class: type[T]) -> T:
        """The settings of one class: what was given, else the defaults."""
        values: dict[str, Any] = {}
        for declared in declarations(settings_class):
            given = self._given.get(declared.name)
            if given is not None:
                values[declared.attribute] = declared.parse(_text(declared, given))
        return settings_class(**values)

    def was_given(self, name: str) -> bool:
        """Whether this name, with dots, was written by the person."""
        return self._given.get(name) is not None


def _text(declared: Declared, given: object) -> str:
    if isinstance(given, str):
        return given
    if isinstance(given, list | tuple | set | frozenset):
        return ",".join(str(each) for each in given)
    if isinstance(given, bool | int | float):
        value: Value = given
        return render(value) or ""
    raise ConfigError(declared.name, f"{given!r} is refused", "give a text or a number")


def _unknown(name: str, known: Iterable[str], scope: str) -> ConfigError:
    from difflib import get_close_matches  # seldom needed, and slow to import

    near = get_close_matches(name, list(known), n=1, cutoff=0.6)
    fix = (
        f"did you mean {near[0].replace('.', '_')!r} ({near[0]})?"
        if near
        else f"docs/python-clients.md lists the settings of a {scope}"
    )
    return ConfigError(name.replace(".", "_"), f"is not a setting of a {scope}", fix)
