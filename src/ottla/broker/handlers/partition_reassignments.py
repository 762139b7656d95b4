"""AlterPartitionReassignments and ListPartitionReassignments: which brokers hold a partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ottla.broker.cluster_view import ClusterView
from ottla.broker.leaderships import Leaderships
from ottla.broker.request import RequestContext
from ottla.cluster.image import PartitionImage
from ottla.errors import ErrorCode, InvalidRequest, OttlaError
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


class AlterPartitionReassignmentsHandler:
    """Begins, changes and ends moves."""

    def __init__(self, leaderships: Leaderships) -> None:
        self._leaderships = leaderships

    async def handle(
        self, request: AlterPartitionReassignmentsRequest, _context: RequestContext
    ) -> AlterPartitionReassignmentsResponse:
        asked = [
            (TopicPartition(topic.name, wish.partition_index), wish.replicas)
            for topic in request.topics
            for wish in topic.partitions
        ]
        named = Counter(key for key, _ in asked)
        twice = InvalidRequest("the request names this partition more than once")
        outcomes = await self._leaderships.reassign(
            {
                key: None if replicas is None else [BrokerId(broker) for broker in replicas]
                for key, replicas in asked
                if named[key] == 1
            },
            may_change_factor=request.allow_replication_factor_change,
        )
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change,
            error_message=None,
            responses=_answers({key: outcomes.get(key, twice) for key, _ in asked}),
        )

    def refuse(
        self, request: AlterPartitionReassignmentsRequest, code: ErrorCode
    ) -> AlterPartitionReassignmentsResponse:
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change,
            error_code=code,
            error_message=code.sentence,
        )


def _answers(
    outcomes: Mapping[TopicPartition, OttlaError | None],
) -> list[ReassignableTopicResponse]:
    topics: dict[str, ReassignableTopicResponse] = {}
    for key, error in outcomes.items():
        topic = topics.setdefault(key.topic, ReassignableTopicResponse(key.topic, []))
        code = ErrorCode.NONE if error is None else error.code
        message = None if error is None else str(error)
        topic.partitions.append(ReassignablePartitionResponse(key.partition, code, message))
    return list(topics.values())


class ListPartitionReassignmentsHandler:
    """Tells which moves are under way."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    async def handle(
        self, request: ListPartitionReassignmentsRequest, _context: RequestContext
    ) -> ListPartitionReassignmentsResponse:
        topics = self._view.image.topics
        if request.topics is None:
            wanted = ((topic.name, topic.partitions) for topic in topics.values())
        else:
            wanted = (
                (topic.name, self._known(topic.name, topic.partition_indexes))
                for topic in request.topics
            )
        moving = [
            OngoingTopicReassignment(name, ongoing)
            for name, partitions in wanted
            if (ongoing := _ongoing(partitions))
        ]
        return ListPartitionReassignmentsResponse(error_message=None, topics=moving)

    def refuse(
        self, _request: ListPartitionReassignmentsRequest, code: ErrorCode
    ) -> ListPartitionReassignmentsResponse:
        return ListPartitionReassignmentsResponse(error_code=code, error_message=code.sentence)

    def _known(self, topic: str, indexes: Iterable[int]) -> tuple[PartitionImage, ...]:
        image = self._view.image
        found = (image.partition(topic, index) for index in indexes)
        return tuple(partition for partition in found if partition is not None)


def _ongoing(partitions: Iterable[PartitionImage]) -> list[OngoingPartitionReassignment]:
    return [
        OngoingPartitionReassignment(
            partition.index,
            list(partition.replicas),
            list(partition.adding_replicas),
            list(partition.removing_replicas),
        )
        for partition in partitions
        if partition.adding_replicas or partition.removing_replicas
    ]
