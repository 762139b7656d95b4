"""ElectLeaders: give partitions back to their preferred leader, or any leader to those without."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.broker.leaderships import ElectionType, Leaderships
from ottla.broker.request import RequestContext
from ottla.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)


class ElectLeadersHandler:
    """Holds elections."""

    def __init__(self, leaderships: Leaderships) -> None:
        self._leaderships = leaderships

    async def handle(
        self, request: ElectLeadersRequest, _context: RequestContext
    ) -> ElectLeadersResponse:
        try:
            kind = ElectionType(request.election_type)
        except ValueError:
            return self.refuse(request, ErrorCode.INVALID_REQUEST)
        if request.topic_partitions is None:
            outcomes = await self._leaderships.elect(kind, None)
            # Who asks for all partitions hears only of those that needed an election.
            outcomes = {
                key: code
                for key, code in outcomes.items()
                if code is not ErrorCode.ELECTION_NOT_NEEDED
            }
        else:
            outcomes = await self._leaderships.elect(kind, _wanted(request.topic_partitions))
        return ElectLeadersResponse(replica_election_results=_results(outcomes))

    def refuse(self, request: ElectLeadersRequest, code: ErrorCode) -> ElectLeadersResponse:
        outcomes = dict.fromkeys(_wanted(request.topic_partitions or ()), code)
        return ElectLeadersResponse(error_code=code, replica_election_results=_results(outcomes))


def _wanted(topics: Iterable[TopicPartitions]) -> list[TopicPartition]:
    return [TopicPartition(wanted.topic, index) for wanted in topics for index in wanted.partitions]


def _results(outcomes: Mapping[TopicPartition, ErrorCode]) -> list[ReplicaElectionResult]:
    topics: dict[str, ReplicaElectionResult] = {}
    for key, code in outcomes.items():
        topic = topics.setdefault(key.topic, ReplicaElectionResult(key.topic, []))
        message = code.sentence if code else None
        topic.partition_result.append(PartitionResult(key.partition, code, message))
    return list(topics.values())
