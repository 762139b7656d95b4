"""Why replicas are not in sync, as leaders tell it; brokers that are not Ottla's say nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ottla.clients.client import Client
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.messages.describe_topic_partitions import (
    NOT_KNOWN,
    AbsenceCause,
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    ReplicaAbsence,
    TopicRequest,
)


@dataclass(frozen=True, slots=True)
class Absence:
    """A replica that is not in sync; what is not known is -1."""

    replica: BrokerId
    cause: AbsenceCause
    left_ms: int = NOT_KNOWN
    """When it left, by its leader's clock."""
    silent_ms: int = NOT_KNOWN
    """How long it had not asked for anything by then."""
    lag_ms: int = NOT_KNOWN
    """How long it had not had everything by then."""
    lag_records: int = NOT_KNOWN
    silent_now_ms: int = NOT_KNOWN
    """How long it has not asked by now; unknown where it never did, in this leader's epoch."""
    lag_records_now: int = NOT_KNOWN


async def describe_absences(
    client: Client, leader: BrokerId, topics: Sequence[str]
) -> dict[TopicPartition, tuple[Absence, ...]]:
    """What one leader knows of absent replicas of the partitions that it leads in these topics."""
    found: dict[TopicPartition, tuple[Absence, ...]] = {}
    cursor: Cursor | None = None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name) for name in sorted(topics)], cursor=cursor
        )
        response = await client.call(request, DescribeTopicPartitionsResponse, to=leader)
        for topic in response.topics:
            found |= _absences(topic)
        following = response.next_cursor
        if following is None or following == cursor:
            return found
        cursor = following


def _absences(
    topic: DescribeTopicPartitionsResponseTopic,
) -> dict[TopicPartition, tuple[Absence, ...]]:
    return {
        TopicPartition(topic.name or "", each.partition_index): tuple(map(_absence, each.absences))
        for each in topic.partitions
        if each.absences
    }


def _absence(told: ReplicaAbsence) -> Absence:
    is_known = told.cause in AbsenceCause.__members__.values()
    return Absence(
        BrokerId(told.replica_id),
        AbsenceCause(told.cause) if is_known else AbsenceCause.UNKNOWN,
        told.left_ms,
        told.silent_ms,
        told.lag_ms,
        told.lag_records,
        told.silent_now_ms,
        told.lag_records_now,
    )
