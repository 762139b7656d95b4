"""The settings of a topic: what is accepted, what is refused and how it is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla.errors import ConfigError, ErrorCode
from ottla.settings import BrokerSettings, TopicSettings
from ottla.settings.declare import render
from ottla.settings.topic import topic_declarations

REFERENCE = Path(__file__).resolve().parents[4] / "shared/kafka/reference/topic-configs.json"
OWN = {"records.check"}  # of Ottla alone


def a_topic(**overrides: str) -> TopicSettings:
    names = {name.replace("_", "."): text for name, text in overrides.items()}
    return TopicSettings.from_overrides(names, BrokerSettings())


def the_refusal(**overrides: str) -> str:
    with pytest.raises(ConfigError) as refusal:
        a_topic(**overrides)
    assert refusal.value.code is ErrorCode.INVALID_CONFIG
    return str(refusal.value)


@pytest.mark.skipif(
    not REFERENCE.exists(), reason="the reference tables are not beside the checkout"
)
def test_every_topic_setting_of_kafka_has_its_kind_and_default() -> None:
    expected = {
        each["name"]: (each["type"], each["default"])
        for each in json.loads(REFERENCE.read_text())
        if not each["internal"]
    }
    declared = {
        name: (
            each.setting.kind.name,
            sorted(each.default) if isinstance(each.default, frozenset | tuple) else each.default,
        )
        for name, each in topic_declarations().items()
        if name not in OWN
    }
    assert declared == expected


def test_an_attribute_is_the_name_with_underscores() -> None:
    assert all(
        each.attribute == name.replace(".", "_") for name, each in topic_declarations().items()
    )


def test_overrides_replace_the_defaults_and_leave_the_rest() -> None:
    settings = a_topic(retention_ms="-1", cleanup_policy="compact, delete", preallocate=" TRUE ")
    assert settings.retention_ms == -1
    assert settings.cleanup_policy == frozenset({"compact", "delete"})
    assert settings.preallocate is True
    assert settings.segment_bytes == TopicSettings().segment_bytes


def test_an_empty_cleanup_policy_keeps_everything() -> None:
    settings = a_topic(cleanup_policy="")
    assert not settings.is_compacted
    assert not settings.is_deleted_by_retention


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("retention_ms", "-2"),
        ("retention_ms", ""),
        ("retention_ms", "1_000"),
        ("retention_ms", "9223372036854775808"),
        ("segment_bytes", "2147483648"),
        ("segment_bytes", "1048575"),
        ("preallocate", "yes"),
        ("min_cleanable_dirty_ratio", "1.1"),
        ("min_cleanable_dirty_ratio", "nan"),
        ("cleanup_policy", "remove"),
        ("cleanup_policy", "compact,remove"),
        ("compression_type", "brotli"),
        ("compression_gzip_level", "0"),
        ("message_timestamp_type", "createtime"),
        ("leader_replication_throttled_replicas", "1-2"),
        ("remote_storage_enable", "true"),
        ("local_retention_ms", "1000"),
    ],
)
def test_what_kafka_refuses_is_refused_by_name_and_value(name: str, text: str) -> None:
    message = the_refusal(**{name: text})
    assert message.startswith(name.replace("_", "."))
    assert repr(text) in message


def test_a_refusal_says_what_is_allowed() -> None:
    assert "from 1 to 9, or -1" in the_refusal(compression_gzip_level="10")
    assert "one of uncompressed, zstd, lz4" in the_refusal(compression_type="brotli")


def test_a_typo_is_answered_with_the_nearest_name() -> None:
    assert "did you mean 'retention.ms'?" in the_refusal(retenton_ms="1")


def test_settings_that_contradict_each_other_are_refused() -> None:
    assert "max.compaction.lag.ms" in the_refusal(
        min_compaction_lag_ms="10", max_compaction_lag_ms="9"
    )


def test_defaults_come_from_the_broker() -> None:
    broker = BrokerSettings.from_texts({"log.segment.bytes": "2000000", "message.max.bytes": "77"})
    settings = TopicSettings.from_overrides({"max.message.bytes": "78"}, broker)
    assert settings.segment_bytes == 2_000_000
    assert settings.max_message_bytes == 78


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (1e7, "1.0E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (0.00012, "1.2E-4"),
        (True, "true"),
        (frozenset({"delete", "compact"}), "compact,delete"),
        (("b", "a"), "b,a"),
        (None, None),
    ],
)
def test_values_are_rendered_as_java_does(value: object, text: str | None) -> None:
    assert render(value) == text  # type: ignore[arg-type]
