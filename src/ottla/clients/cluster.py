"""The cluster as a whole: its id, its controller, its brokers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ottla.clients.address import Address
from ottla.clients.client import ANY_BROKER, Client
from ottla.clients.failures import BrokerTooOld, check_answer
from ottla.clients.metadata import BrokerInfo
from ottla.model.ids import BrokerId
from ottla.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a cluster says of itself."""

    id: str
    controller: BrokerId
    brokers: tuple[BrokerInfo, ...]


async def describe_cluster(client: Client, *, to: BrokerId = ANY_BROKER) -> Cluster:
    """Asks for the cluster's description; brokers too old for that are asked for metadata."""

    async def attempt() -> Cluster:
        try:
            response = await client.call(DescribeClusterRequest(), DescribeClusterResponse, to=to)
        except BrokerTooOld:
            return await _from_metadata(client, to)
        check_answer(response.error_code, "the cluster", response.error_message)
        brokers = [
            BrokerInfo(BrokerId(row.broker_id), Address(row.host, row.port), row.rack)
            for row in response.brokers
        ]
        return Cluster(response.cluster_id, BrokerId(response.controller_id), _sorted(brokers))

    return await client.retrying(attempt)


async def _from_metadata(client: Client, to: BrokerId) -> Cluster:
    picture = await client.refresh(to=to)
    return Cluster(picture.cluster_id or "", picture.controller, _sorted(picture.brokers.values()))


def _sorted(brokers: Iterable[BrokerInfo]) -> tuple[BrokerInfo, ...]:
    return tuple(sorted(brokers, key=lambda broker: broker.id))
