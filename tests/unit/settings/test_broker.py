"""The settings of a broker: Kafka's names, precedence among them, and names without effect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla.errors import ConfigError
from ottla.settings import BrokerSettings
from ottla.settings.broker import ALIASES, broker_declarations, merged
from ottla.settings.listeners import Endpoint
from ottla.settings.unused import UNUSED, refusal, warnings, why_unused

REFERENCE = Path(__file__).resolve().parents[4] / "shared/kafka/reference/broker-configs.json"
OWN_DEFAULTS = {
    "advertised.listeners",
    "controller.listener.names",
    "listeners",
    "log.dir",
    "log.dirs",
    "node.id",
    "queued.max.request.bytes",
    "socket.listen.backlog.size",
    "socket.receive.buffer.bytes",
    "socket.send.buffer.bytes",
}
"""Where Ottla's default differs from Kafka's on purpose."""


def a_broker(**texts: str) -> BrokerSettings:
    return BrokerSettings.from_texts({name.replace("_", "."): text for name, text in texts.items()})


@pytest.mark.skipif(
    not REFERENCE.exists(), reason="the reference tables are not beside the checkout"
)
def test_every_broker_setting_of_kafka_is_declared_or_explained() -> None:
    known = broker_declarations()
    for each in json.loads(REFERENCE.read_text()):
        name = ALIASES.get(each["name"], each["name"])
        if name not in known:
            assert why_unused(name) or refusal(name), name
        elif name not in OWN_DEFAULTS:
            default = known[name].default
            found = sorted(default) if isinstance(default, frozenset) else default
            found = list(found) if isinstance(found, tuple) else found
            assert (known[name].setting.kind.name, found) == (each["type"], each["default"]), name


def test_no_declared_setting_is_called_unused() -> None:
    # A prefix of the table may cover a declared name; a full name may not.
    assert not UNUSED.keys() & broker_declarations().keys()


def test_the_smallest_unit_of_a_retention_wins() -> None:
    assert a_broker().topic_defaults.retention_ms == 168 * 3_600_000
    assert a_broker(log_retention_hours="2").topic_defaults.retention_ms == 7_200_000
    both = a_broker(log_retention_minutes="3", log_retention_hours="2")
    assert both.topic_defaults.retention_ms == 180_000
    all_three = a_broker(log_retention_ms="4", log_retention_minutes="3", log_retention_hours="2")
    assert all_three.topic_defaults.retention_ms == 4


def test_unlimited_hours_are_unlimited_milliseconds() -> None:
    assert a_broker(log_retention_hours="-1").topic_defaults.retention_ms == -1


def test_roll_hours_and_the_flush_interval_reach_the_topic() -> None:
    defaults = a_broker(log_roll_hours="1", log_flush_scheduler_interval_ms="5").topic_defaults
    assert defaults.segment_ms == 3_600_000
    assert defaults.flush_ms == 5


def test_group_and_transaction_settings_have_a_part_of_their_own() -> None:
    settings = a_broker(
        group_initial_rebalance_delay_ms="0", transaction_state_log_num_partitions="7"
    )
    assert settings.groups.group_initial_rebalance_delay_ms == 0
    assert settings.transactions.transaction_state_log_num_partitions == 7


def test_broker_id_is_another_name_for_node_id() -> None:
    assert a_broker(broker_id="4").node_id == 4
    assert a_broker(broker_id="4", node_id="4").node_id == 4
    with pytest.raises(ConfigError, match="contradicts"):
        a_broker(broker_id="4", node_id="5")


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'num\.partitions'"):
        a_broker(num_partition="3")


def test_names_of_kafkas_own_machinery_warn_and_say_why() -> None:
    texts = {"process.roles": "broker,controller", "num.io.threads": "8", "zookeeper.set.acl": "a"}
    assert BrokerSettings.from_texts(texts) == BrokerSettings()
    lines = warnings(texts, broker_declarations())
    assert len(lines) == 3
    assert all(name in line for name, line in zip(texts, lines, strict=True))


def test_an_authorizer_is_refused_rather_than_ignored() -> None:
    with pytest.raises(ConfigError, match="access control"):
        a_broker(authorizer_class_name="kafka.security.authorizer.AclAuthorizer")


def test_listeners_become_endpoints() -> None:
    settings = a_broker(
        listeners="PLAINTEXT://:9092, INSIDE://[::1]:0",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
    )
    assert settings.endpoints() == (Endpoint("PLAINTEXT", "", 9092), Endpoint("INSIDE", "::1", 0))
    assert str(settings.endpoints()[1]) == "INSIDE://[::1]:0"
    assert settings.advertised_endpoints() == settings.endpoints()


def test_a_kraft_controllers_listener_is_left_out() -> None:
    settings = a_broker(
        listeners="PLAINTEXT://:9092,CONTROLLER://:9093",
        advertised_listeners="PLAINTEXT://kafka.example:9092,CONTROLLER://kafka.example:9093",
        controller_listener_names="CONTROLLER",
    )
    assert settings.endpoints() == (Endpoint("PLAINTEXT", "", 9092),)
    assert settings.advertised_endpoints() == (Endpoint("PLAINTEXT", "kafka.example", 9092),)


@pytest.mark.parametrize(
    ("listeners", "reason"),
    [
        ("SSL://:9093", "plain text only"),
        ("OTHER://:9093", "no security protocol"),
        ("PLAINTEXT://:9092,PLAINTEXT://:9093", "twice"),
        ("PLAINTEXT://host", "NAME://host:port"),
        ("PLAINTEXT://host:70000", "NAME://host:port"),
        ("", "no listener"),
    ],
)
def test_a_listener_that_cannot_be_opened_as_asked_is_refused(listeners: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        a_broker(listeners=listeners)


def test_an_advertised_listener_must_be_opened() -> None:
    with pytest.raises(ConfigError, match="does not open"):
        a_broker(
            advertised_listeners="B://h:1",
            listener_security_protocol_map="PLAINTEXT:PLAINTEXT,B:PLAINTEXT",
        )


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
def test_an_address_nobody_can_connect_to_is_not_advertised(host: str) -> None:
    a_broker(listeners=f"PLAINTEXT://{host}:9092")
    with pytest.raises(ConfigError, match="nobody can connect"):
        a_broker(advertised_listeners=f"PLAINTEXT://{host}:9092")


def test_a_later_place_wins_under_either_name() -> None:
    texts = merged({"broker.id": "1", "num.partitions": "2"}, {"node.id": "3"})
    assert BrokerSettings.from_texts(texts).node_id == 3
    assert BrokerSettings.from_texts(texts).num_partitions == 2


def test_log_dirs_win_over_log_dir() -> None:
    assert a_broker(log_dir="a").data_directories() == ("a",)
    assert a_broker(log_dir="a", log_dirs="b").data_directories() == ("b",)
