"""Everything a consumer is told when it is made, read and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ottla.clients.connection_settings import ConnectionSettings
from ottla.clients.consumer.interceptors import ConsumerInterceptor
from ottla.clients.consumer.record import Decoding
from ottla.clients.consumer.settings import (
    TABLE_FETCH_BYTES,
    ConsumerSettings,
    check_consumer,
)
from ottla.clients.consumer.unreadable import OnError
from ottla.clients.serializers import Choice, deserializer_for
from ottla.clients.settings_source import Config, SettingsSource
from ottla.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ConsumerPlan:
    """Settings and the objects that go with them."""

    connection: ConnectionSettings
    settings: ConsumerSettings
    decoding: Decoding
    interceptors: tuple[ConsumerInterceptor, ...] = ()
    table_fetch_bytes: int = TABLE_FETCH_BYTES
    """`max.partition.fetch.bytes`, or more where nobody said it, for whoever reads tables."""
    on_error: OnError = "raise"


def plan_consumer(
    config: Config,
    keywords: Mapping[str, object],
    *,
    deserializers: tuple[Choice, Choice] = (None, None),
    interceptors: Sequence[ConsumerInterceptor] = (),
    on_error: OnError = "raise",
) -> ConsumerPlan:
    """Reads what a person wrote; `deserializers` are the key's and the value's."""
    if on_error not in ("raise", "skip") and not callable(on_error):
        raise ConfigError("on_error", f"{on_error!r} is none", "use 'raise', 'skip' or a function")
    source = SettingsSource("consumer", config, keywords)
    source.check_names((ConnectionSettings, ConsumerSettings))
    settings = source.read(ConsumerSettings)
    check_consumer(settings, auto_commit_was_asked=source.was_given("enable.auto.commit"))
    decoding = Decoding(
        deserializer_for(deserializers[0]), deserializer_for(deserializers[1]), settings.check_crcs
    )
    size_was_given = source.was_given("max.partition.fetch.bytes")
    return ConsumerPlan(
        source.read(ConnectionSettings),
        settings,
        decoding,
        tuple(interceptors),
        settings.max_partition_fetch_bytes if size_was_given else TABLE_FETCH_BYTES,
        on_error,
    )
