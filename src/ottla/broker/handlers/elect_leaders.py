"""ElectLeaders: give partitions back to their preferred leader, or any leader to those without."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from ottla.broker.cluster_view import ClusterView
from ottla.broker.request import RequestContext
from ottla.cluster.image import PartitionImage
from ottla.errors import ErrorCode
from ottla.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)


class ElectionType(IntEnum):
    """What is wanted of an election, by the code on the wire."""

    PREFERRED = 0
    UNCLEAN = 1


class ElectLeadersHandler:
    """Finds out where an election is due. One broker leads all it holds, so that none ever is."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    async def handle(
        self, request: ElectLeadersRequest, _context: RequestContext
    ) -> ElectLeadersResponse:
        try:
            kind = ElectionType(request.election_type)
        except ValueError:
            return self.refuse(request, ErrorCode.INVALID_REQUEST)
        if request.topic_partitions is not None:
            return ElectLeadersResponse(
                replica_election_results=[
                    self._result(wanted.topic, wanted.partitions, kind)
                    for wanted in request.topic_partitions
                ]
            )
        every = (
            self._result(topic.name, range(len(topic.partitions)), kind)
            for topic in self._view.image.topics.values()
        )
        return ElectLeadersResponse(
            replica_election_results=[due for result in every if (due := _due(result))]
        )

    def refuse(self, request: ElectLeadersRequest, code: ErrorCode) -> ElectLeadersResponse:
        return ElectLeadersResponse(
            error_code=code,
            replica_election_results=[
                _refused(wanted, code) for wanted in request.topic_partitions or ()
            ],
        )

    def _result(
        self, topic: str, indexes: Iterable[int], kind: ElectionType
    ) -> ReplicaElectionResult:
        image = self._view.image
        return ReplicaElectionResult(
            topic,
            [_answer(index, _outcome(image.partition(topic, index), kind)) for index in indexes],
        )


def _outcome(partition: PartitionImage | None, kind: ElectionType) -> ErrorCode:
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if kind is ElectionType.PREFERRED:
        is_led = partition.leader == partition.replicas[0]
        absent = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    else:
        is_led = partition.has_leader
        absent = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    return ErrorCode.ELECTION_NOT_NEEDED if is_led else absent


def _answer(index: int, code: ErrorCode) -> PartitionResult:
    return PartitionResult(index, code, code.sentence)


def _due(result: ReplicaElectionResult) -> ReplicaElectionResult | None:
    """Who asks for all partitions hears only of those that needed an election."""
    partitions = [
        partition
        for partition in result.partition_result
        if partition.error_code != ErrorCode.ELECTION_NOT_NEEDED
    ]
    return ReplicaElectionResult(result.topic, partitions) if partitions else None


def _refused(wanted: TopicPartitions, code: ErrorCode) -> ReplicaElectionResult:
    return ReplicaElectionResult(
        wanted.topic, [_answer(index, code) for index in wanted.partitions]
    )
