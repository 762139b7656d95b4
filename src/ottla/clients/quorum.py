"""Who keeps the cluster's metadata, and how far each of them is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ottla.clients.client import Client
from ottla.clients.failures import check_answer, refusal
from ottla.errors import ErrorCode
from ottla.model.ids import BrokerId, Offset
from ottla.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionRequestData,
    ReplicaState,
    TopicRequestData,
)

METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_PARTITION: Final = 0


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """One who has the metadata; times are -1 where nobody says."""

    id: BrokerId
    end_offset: Offset
    fetched_at_ms: int
    caught_up_at_ms: int


@dataclass(frozen=True, slots=True)
class Quorum:
    """Those who decide and those who only follow."""

    leader: BrokerId
    leader_epoch: int
    high_watermark: Offset
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


async def describe_quorum(client: Client) -> Quorum:
    """Asks who keeps the metadata."""
    partition = PartitionRequestData(partition_index=METADATA_PARTITION)
    topic = TopicRequestData(topic_name=METADATA_TOPIC, partitions=[partition])
    request = DescribeQuorumRequest(topics=[topic])

    async def attempt() -> Quorum:
        response = await client.call(request, DescribeQuorumResponse)
        check_answer(response.error_code, "the quorum", response.error_message)
        rows = [row for each in response.topics for row in each.partitions]
        if len(rows) != 1:
            raise refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "the quorum", "no answer for it")
        row = rows[0]
        check_answer(row.error_code, "the quorum", row.error_message)
        return Quorum(
            leader=BrokerId(row.leader_id),
            leader_epoch=row.leader_epoch,
            high_watermark=Offset(row.high_watermark),
            voters=_replicas(row.current_voters),
            observers=_replicas(row.observers),
        )

    return await client.retrying(attempt)


def _replicas(rows: Iterable[ReplicaState]) -> tuple[QuorumReplica, ...]:
    return tuple(
        QuorumReplica(
            BrokerId(row.replica_id),
            Offset(row.log_end_offset),
            row.last_fetch_timestamp,
            row.last_caught_up_timestamp,
        )
        for row in rows
    )
