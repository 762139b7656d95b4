"""Opens the place that keeps the cluster's metadata, as the settings name it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.store import MetadataStore
from ottla.errors import ConfigError
from ottla.model.clock import Clock
from ottla.settings.broker import BrokerSettings

METADATA_FILE: Final = "ottla-metadata.db"
ZOOKEEPER: Final = "zookeeper://"


def is_shared(settings: BrokerSettings) -> bool:
    """Whether other brokers may use the metadata as well."""
    return bool(settings.metadata or settings.zookeeper_connect)


async def open_store(settings: BrokerSettings, root: Path, clock: Clock) -> MetadataStore:
    """A ZooKeeper ensemble where the settings name one, else a file in the data directory."""
    if not is_shared(settings):
        return await EmbeddedStore.open(root / METADATA_FILE)
    try:
        from ottla.cluster.zookeeper import ZooKeeperStore
        from ottla.cluster.zookeeper_address import ZooKeeperAddress
    except ImportError as error:
        raise ConfigError(
            "metadata", f"ZooKeeper needs a library ({error})", "pip install 'ottla[cluster]'"
        ) from error
    address = ZooKeeperAddress.parse(settings.metadata or ZOOKEEPER + settings.zookeeper_connect)
    if "session_timeout_ms=" not in settings.metadata:
        address = address.with_session_timeout(settings.zookeeper_session_timeout_ms)
    return await ZooKeeperStore.open(address, clock)
