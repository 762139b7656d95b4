"""What DescribeConfigs tells of a setting: its value, where that came from and what else was given.

Works on the layers of texts (defaults, the file and command line, changes at run time). Does not
know the wire format, nor where the run-time changes are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from ottla.errors import ConfigError
from ottla.settings.broker import (
    ALIASES,
    TOPIC_DEFAULTS,
    BrokerSettings,
    broker_declarations,
    merged,
)
from ottla.settings.declare import Declared, Kind, render, unknown
from ottla.settings.group import GROUP_DEFAULTS, group_declarations
from ottla.settings.topic import topic_declarations

_UNITS: Final = {each.name: each.unit for names in TOPIC_DEFAULTS.values() for each in names}


class ConfigSource(IntEnum):
    """Where a value came from, by the code DescribeConfigs sends."""

    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    DYNAMIC_GROUP = 8


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """One place that gives a value for a setting, under the name used there."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class DescribedSetting:
    """A setting with its value in force. The first synonym is the one in force."""

    declared: Declared
    value: str | None
    source: ConfigSource
    is_read_only: bool
    synonyms: tuple[ConfigSynonym, ...]

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def kind(self) -> Kind:
        return self.declared.setting.kind

    @property
    def doc(self) -> str:
        return self.declared.doc

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT

    @property
    def is_sensitive(self) -> bool:
        return self.kind is Kind.PASSWORD


@dataclass(frozen=True, slots=True)
class BrokerLayers:
    """The texts given for a broker, by how they were given; `dynamic` wins over the ones before."""

    static: Mapping[str, str] = field(default_factory=dict)
    dynamic_default: Mapping[str, str] = field(default_factory=dict)
    dynamic: Mapping[str, str] = field(default_factory=dict)

    def settings(self) -> BrokerSettings:
        """The settings in force."""
        return BrokerSettings.from_texts(merged(self.static, self.dynamic_default, self.dynamic))


def describe_topic(overrides: Mapping[str, str], layers: BrokerLayers) -> list[DescribedSetting]:
    """Every setting of a topic with the given overrides."""
    found = []
    for declared in topic_declarations().values():
        synonyms = tuple(_topic_synonyms(declared, overrides, layers))
        value, source = render(declared.default), ConfigSource.DEFAULT
        if synonyms:
            value, source = _in_topic_units(synonyms[0]), synonyms[0].source
        found.append(DescribedSetting(declared, value, source, False, synonyms))
    return found


def describe_broker(layers: BrokerLayers) -> list[DescribedSetting]:
    """Every setting of a broker."""
    found = []
    for name, declared in broker_declarations().items():
        synonyms = [
            synonym
            for each in _names_behind(declared)
            for synonym in _broker_synonyms(each, layers)
        ]
        own = next((synonym for synonym in synonyms if synonym.name == name), None)
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
        is_read_only = not declared.setting.is_live
        value = own.value if own is not None else None
        found.append(DescribedSetting(declared, value, source, is_read_only, tuple(synonyms)))
    return found


def describe_group(overrides: Mapping[str, str], layers: BrokerLayers) -> list[DescribedSetting]:
    """Every setting of a group with the given overrides."""
    found = []
    for name, declared in group_declarations().items():
        synonyms = [*_broker_synonyms(GROUP_DEFAULTS[name], layers)]
        if name in overrides:
            text = declared.normalised(overrides[name])
            synonyms.insert(0, ConfigSynonym(name, text, ConfigSource.DYNAMIC_GROUP))
        value, source = synonyms[0].value, synonyms[0].source
        found.append(DescribedSetting(declared, value, source, False, tuple(synonyms)))
    return found


def check_live(texts: Mapping[str, str]) -> None:
    """ConfigError unless a running broker can take each of these texts."""
    known = broker_declarations()
    for given, text in texts.items():
        declared = known.get(ALIASES.get(given, given))
        if declared is None:
            raise unknown(given, known, scope="broker")
        if not declared.setting.is_live:
            raise ConfigError(
                given,
                "cannot change while the broker runs",
                "set it in the broker's configuration file and start it again",
            )
        declared.parse(text)


def _topic_synonyms(
    declared: Declared, overrides: Mapping[str, str], layers: BrokerLayers
) -> Iterator[ConfigSynonym]:
    if declared.name in overrides:
        text = declared.normalised(overrides[declared.name])
        yield ConfigSynonym(declared.name, text, ConfigSource.DYNAMIC_TOPIC)
    for each in TOPIC_DEFAULTS.get(declared.attribute, ()):
        yield from _broker_synonyms(each.name, layers)


def _in_topic_units(synonym: ConfigSynonym) -> str | None:
    """A broker's hours or minutes as the milliseconds of the topic; -1 stays what it is."""
    unit = _UNITS.get(synonym.name, 1)
    if unit == 1 or synonym.value is None or int(synonym.value) < 0:
        return synonym.value
    return str(int(synonym.value) * unit)


def _names_behind(declared: Declared) -> list[str]:
    """The names that can give a broker setting's value: its own, then those it falls back to."""
    names = [each.name for each in TOPIC_DEFAULTS.get(declared.attribute, ())]
    return names[names.index(declared.name) :] if declared.name in names else [declared.name]


def _broker_synonyms(name: str, layers: BrokerLayers) -> Iterator[ConfigSynonym]:
    declared = broker_declarations()[name]
    is_hidden = declared.setting.kind is Kind.PASSWORD
    for texts, source in (
        (layers.dynamic, ConfigSource.DYNAMIC_BROKER),
        (layers.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (layers.static, ConfigSource.STATIC_BROKER),
    ):
        text = _text_for(name, texts)
        if text is not None:
            yield ConfigSynonym(name, None if is_hidden else declared.normalised(text), source)
    if declared.default is not None:
        yield ConfigSynonym(name, render(declared.default), ConfigSource.DEFAULT)


def _text_for(name: str, texts: Mapping[str, str]) -> str | None:
    if name in texts:
        return texts[name]
    return next((texts[old] for old, new in ALIASES.items() if new == name and old in texts), None)
