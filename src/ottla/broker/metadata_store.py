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


def refusal(settings: BrokerSettings, root: str) -> ConfigError:
    """Why a broker with data does not start on metadata that lacks it, and what to do."""
    if is_shared(settings):
        address = settings.metadata or ZOOKEEPER + settings.zookeeper_connect
        return ConfigError(
            "metadata",
            f"{address} has no cluster in it, and {root} has the data of one",
            "check the address, or restore ZooKeeper's data; if it is lost, stop all brokers and"
            f" rebuild the topics on each from its logs: ottla log adopt {root}"
            f" --metadata {address}",
        )
    return ConfigError(
        "log.dirs",
        f"{root} has data, and its {METADATA_FILE} is missing or empty",
        "restore the file from a copy, or rebuild the topics from the logs:"
        f" ottla log adopt {root}",
    )


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
