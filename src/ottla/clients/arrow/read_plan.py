"""What a reader of a bounded part of a topic is told: which columns, by which settings.

The settings are a consumer's, so that its keywords and its properties file work here too; those of
its group mean nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ottla.clients.arrow.columns import COLUMNS, checked_columns
from ottla.clients.connection_settings import ConnectionSettings
from ottla.clients.consumer.settings import TABLE_FETCH_BYTES, ConsumerSettings
from ottla.clients.settings_source import Config, SettingsSource


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """How to read."""

    connection: ConnectionSettings
    columns: tuple[str, ...] = COLUMNS
    committed_only: bool = False
    checks_crc: bool = True
    fetch_bytes: int = TABLE_FETCH_BYTES
    """What is asked for at once; twice as much may be in memory for each partition being read."""
    wait_ms: int = 500
    timeout_s: float = 60.0
    """How long there may be no progress before the reader gives up."""


def plan_read(
    config: Config,
    keywords: Mapping[str, object],
    *,
    columns: Sequence[str] = COLUMNS,
    read_committed: bool | None = None,
) -> ReadPlan:
    """Reads what a person wrote; `read_committed` is a shorter way to say `isolation_level`."""
    source = SettingsSource("reader", config, keywords)
    source.check_names((ConnectionSettings, ConsumerSettings))
    settings = source.read(ConsumerSettings)
    size_was_given = source.was_given("max.partition.fetch.bytes")
    return ReadPlan(
        connection=source.read(ConnectionSettings),
        columns=checked_columns(columns),
        committed_only=settings.committed_only if read_committed is None else read_committed,
        checks_crc=settings.check_crcs,
        fetch_bytes=settings.max_partition_fetch_bytes if size_was_given else TABLE_FETCH_BYTES,
        wait_ms=settings.fetch_max_wait_ms,
        timeout_s=settings.default_api_timeout_ms / 1000,
    )
