"""A group's own settings: over the broker's, and only such as members can keep."""

from __future__ import annotations

import pytest

from ottla.errors import ConfigError
from ottla.settings.coordination import GroupSettings
from ottla.settings.describe import BrokerLayers, ConfigSource, describe_group
from ottla.settings.group import OwnGroupSettings


def test_a_group_has_the_brokers_settings_where_it_has_none_of_its_own() -> None:
    broker = GroupSettings(
        group_consumer_session_timeout_ms=9000, group_consumer_heartbeat_interval_ms=3000
    )
    assert OwnGroupSettings.from_overrides({}, broker) == OwnGroupSettings(9000, 3000)
    own = OwnGroupSettings.from_overrides({"consumer.session.timeout.ms": "7000"}, broker)
    assert own == OwnGroupSettings(7000, 3000)


@pytest.mark.parametrize(
    "texts",
    [
        {"consumer.session.timeout.ms": "0"},
        {"consumer.session.timeout.ms": "soon"},
        {"consumer.session.timeout.ms": "5000", "consumer.heartbeat.interval.ms": "5000"},
        {"retention.ms": "1"},
    ],
)
def test_settings_no_member_could_keep_are_refused(texts: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        OwnGroupSettings.from_overrides(texts, GroupSettings())


def test_what_is_told_of_a_setting_names_the_brokers_setting_behind_it() -> None:
    layers = BrokerLayers(static={"group.consumer.session.timeout.ms": "50000"})
    overrides = {"consumer.heartbeat.interval.ms": "1000"}
    session, heartbeat = describe_group(overrides, layers)
    assert (session.value, session.source) == ("50000", ConfigSource.STATIC_BROKER)
    assert (heartbeat.value, heartbeat.source) == ("1000", ConfigSource.DYNAMIC_GROUP)
    assert [each.name for each in heartbeat.synonyms] == [
        "consumer.heartbeat.interval.ms",
        "group.consumer.heartbeat.interval.ms",
    ]
