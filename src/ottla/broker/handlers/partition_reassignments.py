"""AlterPartitionReassignments and ListPartitionReassignments: which brokers hold a partition.

One broker can hold a partition only itself: a wish is granted if it is how things are already, and
no move is ever under way.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.broker.cluster_view import ClusterView
from ottla.broker.request import RequestContext
from ottla.cluster.image import PartitionImage
from ottla.errors import ErrorCode, InvalidReplicaAssignment, OttlaError, RequestFailed
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
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
    """Looks at each wish."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    async def handle(
        self, request: AlterPartitionReassignmentsRequest, _context: RequestContext
    ) -> AlterPartitionReassignmentsResponse:
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change,
            error_message=None,
            responses=[
                ReassignableTopicResponse(
                    topic.name, [self._answer(topic.name, wish) for wish in topic.partitions]
                )
                for topic in request.topics
            ],
        )

    def refuse(
        self, _request: AlterPartitionReassignmentsRequest, code: ErrorCode
    ) -> AlterPartitionReassignmentsResponse:
        return AlterPartitionReassignmentsResponse(error_code=code, error_message=code.sentence)

    def _answer(self, topic: str, wish: ReassignablePartition) -> ReassignablePartitionResponse:
        try:
            self._check(self._view.image.partition(topic, wish.partition_index), wish.replicas)
        except OttlaError as error:
            return ReassignablePartitionResponse(wish.partition_index, error.code, str(error))
        return ReassignablePartitionResponse(wish.partition_index, ErrorCode.NONE, None)

    def _check(self, partition: PartitionImage | None, replicas: list[int] | None) -> None:
        if partition is None:
            raise RequestFailed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if replicas is None:
            raise RequestFailed(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        if not replicas:
            raise InvalidReplicaAssignment("a partition needs at least one replica")
        if len(set(replicas)) != len(replicas):
            raise InvalidReplicaAssignment(f"a broker stands twice in {replicas}")
        if absent := [broker for broker in replicas if broker not in self._view.image.brokers]:
            raise InvalidReplicaAssignment(f"no such broker: {', '.join(map(str, absent))}")


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
