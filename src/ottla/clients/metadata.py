"""A picture of the cluster: its brokers, and who leads each partition. Does not ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.clients.address import Address
from ottla.clients.failures import error_code
from ottla.errors import ErrorCode
from ottla.model.ids import NO_LEADER_EPOCH, BrokerId, LeaderEpoch, TopicId
from ottla.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NO_BROKER = BrokerId(-1)


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A broker and the address it advertises."""

    id: BrokerId
    address: Address
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """A partition and the brokers that hold it."""

    partition: int
    leader: BrokerId
    leader_epoch: LeaderEpoch = NO_LEADER_EPOCH
    replicas: tuple[BrokerId, ...] = ()
    in_sync: tuple[BrokerId, ...] = ()
    offline: tuple[BrokerId, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic and its partitions, in order; or the reason why there is none."""

    name: str
    id: TopicId
    is_internal: bool
    partitions: tuple[PartitionInfo, ...]
    error: ErrorCode = ErrorCode.NONE

    @property
    def replication_factor(self) -> int:
        """How many replicas the first partition has; outside a reassignment, all do."""
        return len(self.partitions[0].replicas) if self.partitions else 0


@dataclass(frozen=True, slots=True)
class ClusterPicture:
    """What one metadata answer said."""

    cluster_id: str | None = None
    controller: BrokerId = NO_BROKER
    brokers: Mapping[BrokerId, BrokerInfo] = field(default_factory=dict)
    topics: Mapping[str, TopicInfo] = field(default_factory=dict)


def picture_from(response: MetadataResponse) -> ClusterPicture:
    """The picture that a metadata answer draws."""
    brokers = {
        BrokerId(broker.node_id): BrokerInfo(
            BrokerId(broker.node_id), Address(broker.host, broker.port), broker.rack
        )
        for broker in response.brokers
    }
    topics = [_topic_from(topic) for topic in response.topics]
    return ClusterPicture(
        cluster_id=response.cluster_id,
        controller=BrokerId(response.controller_id),
        brokers=brokers,
        topics={topic.name: topic for topic in topics if topic.name},
    )


def _topic_from(topic: MetadataResponseTopic) -> TopicInfo:
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    return TopicInfo(
        name=topic.name or "",
        id=TopicId(topic.topic_id),
        is_internal=topic.is_internal,
        partitions=tuple(_partition_from(partition) for partition in partitions),
        error=error_code(topic.error_code),
    )


def _partition_from(partition: MetadataResponsePartition) -> PartitionInfo:
    return PartitionInfo(
        partition=partition.partition_index,
        leader=BrokerId(partition.leader_id),
        leader_epoch=LeaderEpoch(partition.leader_epoch),
        replicas=tuple(BrokerId(node) for node in partition.replica_nodes),
        in_sync=tuple(BrokerId(node) for node in partition.isr_nodes),
        offline=tuple(BrokerId(node) for node in partition.offline_replicas),
    )
