"""What a broker that is not the leader says of who is: taken over where it is news (KIP-951).

It saves the look at the cluster and the wait before it. Only a newer epoch counts: whatever comes
late says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from ottla.clients.address import Address
from ottla.clients.metadata import BrokerInfo, ClusterPicture, TopicInfo
from ottla.model.ids import BrokerId, LeaderEpoch, TopicPartition


class Hint(Protocol):
    """As answers to Produce and Fetch carry it."""

    leader_id: int
    leader_epoch: int


class Endpoint(Protocol):
    """Where such an answer says that a broker is."""

    node_id: int
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, slots=True)
class LeaderHint:
    """Who leads a partition, since which epoch, and where the brokers named beside it are."""

    where: TopicPartition
    leader: BrokerId
    epoch: LeaderEpoch
    brokers: Mapping[BrokerId, BrokerInfo]


def read_hint(
    where: TopicPartition, hint: Hint | None, endpoints: Iterable[Endpoint]
) -> LeaderHint | None:
    """The hint in an answer, if there is one."""
    if hint is None or hint.leader_id < 0 or hint.leader_epoch < 0:
        return None
    brokers = {
        BrokerId(each.node_id): BrokerInfo(
            BrokerId(each.node_id), Address(each.host, each.port), each.rack
        )
        for each in endpoints
    }
    return LeaderHint(where, BrokerId(hint.leader_id), LeaderEpoch(hint.leader_epoch), brokers)


def with_hint(picture: ClusterPicture, hint: LeaderHint) -> ClusterPicture | None:
    """The picture with the leader of the hint; None where it is no news, or leads nowhere."""
    topic = picture.topics.get(hint.where.topic)
    if topic is None or hint.where.partition >= len(topic.partitions):
        return None
    known = topic.partitions[hint.where.partition]
    brokers = {**picture.brokers, **hint.brokers}
    if hint.epoch <= known.leader_epoch or hint.leader not in brokers:
        return None
    partitions = list(topic.partitions)
    partitions[known.partition] = replace(known, leader=hint.leader, leader_epoch=hint.epoch)
    topics = {**picture.topics, topic.name: replace(topic, partitions=tuple(partitions))}
    return replace(picture, brokers=brokers, topics=topics)


def newer(known: TopicInfo | None, told: TopicInfo) -> TopicInfo:
    """What metadata told, save leaders of which a later epoch is known already."""
    if known is None or known.id != told.id:
        return told
    pairs = zip(known.partitions, told.partitions, strict=False)
    if all(before.leader_epoch <= after.leader_epoch for before, after in pairs):
        return told
    partitions = [
        replace(after, leader=before.leader, leader_epoch=before.leader_epoch)
        if before.leader_epoch > after.leader_epoch >= 0
        else after
        for before, after in zip(known.partitions, told.partitions, strict=False)
    ]
    rest = told.partitions[len(partitions) :]
    return replace(told, partitions=(*partitions, *rest))
