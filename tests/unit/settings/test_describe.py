"""What DescribeConfigs tells: the value in force, its source and its synonyms."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.errors import ConfigError
from ottla.settings.broker import broker_declarations
from ottla.settings.describe import (
    BrokerLayers,
    ConfigSource,
    ConfigSynonym,
    DescribedSetting,
    check_live,
    describe_broker,
    describe_topic,
)
from ottla.settings.document import help_text, markdown
from ottla.settings.topic import topic_declarations

PAGE = Path(__file__).resolve().parents[3] / "docs" / "settings.md"


def topic_setting(
    name: str, layers: BrokerLayers, overrides: dict[str, str] | None = None
) -> DescribedSetting:
    return {each.name: each for each in describe_topic(overrides or {}, layers)}[name]


def broker_setting(name: str, layers: BrokerLayers) -> DescribedSetting:
    return {each.name: each for each in describe_broker(layers)}[name]


def test_an_override_stands_before_the_broker_and_the_default() -> None:
    layers = BrokerLayers(
        static={"log.segment.bytes": "3000000"},
        dynamic_default={"log.segment.bytes": "4000000"},
        dynamic={"log.segment.bytes": "5000000"},
    )
    found = topic_setting("segment.bytes", layers, {"segment.bytes": " 2000000"})
    assert found.value == "2000000"
    assert found.source is ConfigSource.DYNAMIC_TOPIC
    assert found.synonyms == (
        ConfigSynonym("segment.bytes", "2000000", ConfigSource.DYNAMIC_TOPIC),
        ConfigSynonym("log.segment.bytes", "5000000", ConfigSource.DYNAMIC_BROKER),
        ConfigSynonym("log.segment.bytes", "4000000", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ConfigSynonym("log.segment.bytes", "3000000", ConfigSource.STATIC_BROKER),
        ConfigSynonym("log.segment.bytes", "1073741824", ConfigSource.DEFAULT),
    )


def test_a_default_in_hours_is_shown_in_the_topics_milliseconds() -> None:
    found = topic_setting("retention.ms", BrokerLayers())
    assert (found.value, found.source) == ("604800000", ConfigSource.DEFAULT)
    assert found.synonyms == (ConfigSynonym("log.retention.hours", "168", ConfigSource.DEFAULT),)
    assert found.is_default


def test_the_topic_shown_is_the_topic_in_force() -> None:
    layers = BrokerLayers(
        static={
            "log.retention.minutes": "5",
            "log.roll.hours": "2",
            "log.cleanup.policy": "compact",
        },
        dynamic={"log.retention.ms": "-1"},
    )
    settings = layers.settings().topic_defaults
    for each in describe_topic({}, layers):
        value = getattr(settings, each.declared.attribute)
        assert each.declared.parse(each.value or "") == value, each.name


def test_a_list_keeps_the_order_it_was_given_in() -> None:
    found = topic_setting("cleanup.policy", BrokerLayers(), {"cleanup.policy": "delete, compact"})
    assert found.value == "delete,compact"


def test_a_brokers_setting_names_its_source_and_whether_it_may_change() -> None:
    layers = BrokerLayers(static={"broker.id": "7"}, dynamic={"max.connections": "10"})
    node_id = broker_setting("node.id", layers)
    assert (node_id.value, node_id.source) == ("7", ConfigSource.STATIC_BROKER)
    assert node_id.is_read_only
    connections = broker_setting("max.connections", layers)
    assert (connections.value, connections.source) == ("10", ConfigSource.DYNAMIC_BROKER)
    assert not connections.is_read_only


def test_an_unset_setting_shows_nothing_and_what_stands_in_for_it() -> None:
    found = broker_setting("log.retention.ms", BrokerLayers())
    assert found.value is None
    assert found.synonyms == (ConfigSynonym("log.retention.hours", "168", ConfigSource.DEFAULT),)


def test_only_live_settings_change_while_the_broker_runs() -> None:
    check_live({"log.retention.ms": "1000", "max.connections": "5"})
    for texts, reason in (
        ({"node.id": "2"}, "cannot change"),
        ({"log.retention.hours": "1"}, "cannot change"),
        ({"no.such": "1"}, "is not a broker setting"),
        ({"max.connections": "x"}, "not a whole number"),
    ):
        with pytest.raises(ConfigError, match=reason):
            check_live(texts)


def test_every_setting_has_a_sentence_of_help() -> None:
    for each in (*topic_declarations().values(), *broker_declarations().values()):
        assert each.doc.endswith("."), each.name
        assert "default" in help_text(each)


def test_the_documentation_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(), "run tools/settings_docs.py"
