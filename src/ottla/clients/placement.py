"""Where partitions are: move them to other brokers or directories, elect their leaders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from ottla.clients.client import CONTROLLER, Client
from ottla.clients.failures import check_answer, refusal
from ottla.clients.group_offsets import by_topic
from ottla.clients.metadata import TopicInfo
from ottla.clients.topics import list_topics
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from ottla.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

Refusals = dict[TopicPartition, RequestFailed]
"""Why something was not done for some partitions; empty where all went well."""


class Election(IntEnum):
    """Who may win, by its number on the wire."""

    PREFERRED = 0
    UNCLEAN = 1
    """Also one that was not in sync: records may be lost."""


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A partition on its way to other brokers."""

    partition: TopicPartition
    replicas: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...]
    removing: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where partitions are; one that is not among the moves has the replicas it will keep."""

    topics: list[TopicInfo]
    """All topics by name, internal ones too."""
    moves: list[Reassignment]


async def elect_leaders(
    client: Client,
    partitions: Iterable[TopicPartition] | None = None,
    election: Election = Election.PREFERRED,
) -> Refusals:
    """Elects leaders, for all partitions unless some are named."""
    topics = None
    if partitions is not None:
        topics = [
            TopicPartitions(topic=topic, partitions=[each.partition for each in rows])
            for topic, rows in by_topic(partitions).items()
        ]
    request = ElectLeadersRequest(election_type=election, topic_partitions=topics)

    async def attempt() -> Refusals:
        response = await client.call(request, ElectLeadersResponse, to=CONTROLLER)
        check_answer(response.error_code, "the election")
        return {
            TopicPartition(topic.topic, row.partition_id): refusal(
                row.error_code, f"{topic.topic}-{row.partition_id}", row.error_message
            )
            for topic in response.replica_election_results
            for row in topic.partition_result
            if row.error_code not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)
        }

    return await client.retrying(attempt)


async def reassign_partitions(
    client: Client, replicas: Mapping[TopicPartition, Sequence[int] | None]
) -> Refusals:
    """Begins to move partitions to these brokers; None cancels a move."""
    topics = [
        ReassignableTopic(
            name=topic,
            partitions=[
                ReassignablePartition(
                    partition_index=each.partition,
                    replicas=None if replicas[each] is None else list(replicas[each] or ()),
                )
                for each in rows
            ],
        )
        for topic, rows in by_topic(replicas).items()
    ]
    request = AlterPartitionReassignmentsRequest(topics=topics)

    async def attempt() -> Refusals:
        response = await client.call(request, AlterPartitionReassignmentsResponse, to=CONTROLLER)
        check_answer(response.error_code, "the reassignment", response.error_message)
        return {
            TopicPartition(topic.name, row.partition_index): refusal(
                row.error_code, f"{topic.name}-{row.partition_index}", row.error_message
            )
            for topic in response.responses
            for row in topic.partitions
            if row.error_code
        }

    return await client.retrying(attempt)


async def list_reassignments(client: Client) -> list[Reassignment]:
    """The moves under way."""

    async def attempt() -> list[Reassignment]:
        response = await client.call(
            ListPartitionReassignmentsRequest(topics=None),
            ListPartitionReassignmentsResponse,
            to=CONTROLLER,
        )
        check_answer(response.error_code, "the reassignments", response.error_message)
        return [
            Reassignment(
                TopicPartition(topic.name, row.partition_index),
                tuple(BrokerId(each) for each in row.replicas),
                tuple(BrokerId(each) for each in row.adding_replicas),
                tuple(BrokerId(each) for each in row.removing_replicas),
            )
            for topic in response.topics
            for row in topic.partitions
        ]

    return await client.retrying(attempt)


async def look_at_placement(client: Client) -> Placement:
    """Topics and moves that fit together.

    Both are the controller's word: another broker may for a while show the replicas of a move that
    is done, and who takes these for settled would plan with too many. The moves are asked for
    on both sides of the topics, because one may end or begin in between.
    """
    before = await list_reassignments(client)
    topics = await list_topics(client, internal=True, to=CONTROLLER)
    after = await list_reassignments(client)
    moves = {move.partition: move for move in (*before, *after)}
    return Placement(topics, list(moves.values()))


async def move_replicas(
    client: Client, broker: BrokerId, paths: Mapping[TopicPartition, str]
) -> Refusals:
    """Moves replicas of one broker to other data directories of it."""
    by_path: dict[str, list[TopicPartition]] = {}
    for partition, path in paths.items():
        by_path.setdefault(path, []).append(partition)
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path,
                topics=[
                    AlterReplicaLogDirTopic(name=t, partitions=[each.partition for each in rows])
                    for t, rows in by_topic(partitions).items()
                ],
            )
            for path, partitions in by_path.items()
        ]
    )

    async def attempt() -> Refusals:
        response = await client.call(request, AlterReplicaLogDirsResponse, to=broker)
        return {
            TopicPartition(topic.topic_name, row.partition_index): refusal(
                row.error_code, f"{topic.topic_name}-{row.partition_index}"
            )
            for topic in response.results
            for row in topic.partitions
            if row.error_code
        }

    return await client.retrying(attempt)
