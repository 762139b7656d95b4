"""What a person writes becomes settings, or an error that helps."""

from pathlib import Path

import pytest

from ottla.clients.connection_settings import ConnectionSettings
from ottla.clients.producer.core import plan_producer
from ottla.clients.producer.settings import ProducerSettings
from ottla.clients.settings_source import SettingsSource
from ottla.errors import ConfigError

BOTH = (ConnectionSettings, ProducerSettings)


def test_keywords_and_dotted_names_mean_the_same() -> None:
    by_keyword = SettingsSource("producer", None, {"linger_ms": 20, "client_id": "a"})
    by_name = SettingsSource("producer", {"linger.ms": "20", "client.id": "a"}, {})

    assert by_keyword.read(ProducerSettings) == by_name.read(ProducerSettings)
    assert by_keyword.read(ConnectionSettings).client_id == "a"


def test_a_keyword_wins_over_the_config() -> None:
    source = SettingsSource("producer", {"linger.ms": 1}, {"linger_ms": 2})

    assert source.read(ProducerSettings).linger_ms == 2


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="linger_ms"):
        SettingsSource("producer", None, {"linger_mss": 20}).check_names(BOTH)


def test_a_config_that_is_neither_names_nor_a_file_is_refused() -> None:
    with pytest.raises(ConfigError, match="mapping of names"):
        SettingsSource("producer", 5, {})  # type: ignore[arg-type]


def test_names_of_the_jvm_are_passed_over() -> None:
    source = SettingsSource("producer", {"key.serializer": "org.example.Some"}, {})

    source.check_names(BOTH)


def test_a_properties_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "producer.properties"
    path.write_text("bootstrap.servers=a:1,b:2\nacks=1\ncompression.type=zstd\n")
    plan = plan_producer(path, {})

    assert plan.connection.bootstrap_servers == ("a:1", "b:2")
    assert plan.settings.acks_number == 1
    assert not plan.settings.enable_idempotence, "acks=1 leaves no ground for it"


def test_idempotence_that_was_asked_for_is_not_dropped_silently() -> None:
    with pytest.raises(ConfigError, match="acks"):
        plan_producer(None, {"acks": "1", "enable_idempotence": True})


def test_transactions_need_idempotence() -> None:
    with pytest.raises(ConfigError, match="idempotence"):
        plan_producer(None, {"transactional_id": "t", "enable_idempotence": False})
