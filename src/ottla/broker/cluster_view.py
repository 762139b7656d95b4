"""What this broker knows of the cluster at this moment, and how clients are to reach it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ottla.cluster.image import ClusterImage, ConfigImage
from ottla.cluster.layout import DEFAULT_ENTITY
from ottla.cluster.metadata import ClusterMetadata
from ottla.model.ids import BrokerId
from ottla.net.listener import Address
from ottla.net.server_connection import Peer
from ottla.settings.describe import BrokerLayers
from ottla.settings.listeners import parse_endpoint


class BrokerAddress(msgspec.Struct, frozen=True):
    """A broker as clients are told of it."""

    id: int
    host: str
    port: int
    rack: str | None


class ClusterView:
    """The newest image, and this broker's own place in it."""

    def __init__(
        self, metadata: ClusterMetadata, broker_id: BrokerId, static: Mapping[str, str]
    ) -> None:
        self._metadata = metadata
        self.broker_id = broker_id
        self.advertised = Address("", 0)
        self._static = static
        self.configured()

    def configured(self) -> None:
        """The settings of brokers may have changed."""
        self.layers = self._layers()
        self.settings = self.layers.settings()

    @property
    def image(self) -> ClusterImage:
        """The cluster as it was last committed."""
        return self._metadata.image

    def _layers(self) -> BrokerLayers:
        """Where this broker's settings come from."""
        configs = self.image.broker_configs
        return BrokerLayers(
            self._static,
            configs.get(DEFAULT_ENTITY, ConfigImage()).configs,
            configs.get(str(self.broker_id), ConfigImage()).configs,
        )

    def brokers(self, peer: Peer) -> list[BrokerAddress]:
        """All brokers, with the address under which this client can reach each.

        A broker that listens on every interface and was not told what to advertise is known to a
        client by the address the client itself has used.
        """
        known = [self._own_address(peer)]
        for broker in self.image.brokers.values():
            address = self.address_of(broker.id)
            if broker.id != self.broker_id and address is not None:
                known.append(BrokerAddress(broker.id, address.host, address.port, broker.rack))
        return known

    def _own_address(self, peer: Peer) -> BrokerAddress:
        host = self.advertised.host or peer.local_host
        return BrokerAddress(self.broker_id, host, self.advertised.port, self.settings.broker_rack)

    def address_of(self, broker_id: BrokerId) -> Address | None:
        """Where another broker can be reached; None where it is not alive."""
        broker = self.image.brokers.get(broker_id)
        endpoint = parse_endpoint(broker.endpoints[0]) if broker and broker.endpoints else None
        return None if endpoint is None else Address(endpoint.host, endpoint.port)
