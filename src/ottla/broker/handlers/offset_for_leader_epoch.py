"""OffsetForLeaderEpoch: where an epoch ended, so that readers see where histories part."""

from __future__ import annotations

from ottla.broker.partitions import Partitions
from ottla.broker.request import RequestContext
from ottla.errors import ErrorCode, OttlaError
from ottla.model.ids import LeaderEpoch
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


class OffsetForLeaderEpochHandler:
    """Answers from the logs' epoch histories."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    async def handle(
        self, request: OffsetForLeaderEpochRequest, _context: RequestContext
    ) -> OffsetForLeaderEpochResponse:
        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    topic.topic, [self._answer(topic.topic, wanted) for wanted in topic.partitions]
                )
                for topic in request.topics
            ]
        )

    def refuse(
        self, request: OffsetForLeaderEpochRequest, code: ErrorCode
    ) -> OffsetForLeaderEpochResponse:
        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    topic.topic,
                    [EpochEndOffset(code, wanted.partition) for wanted in topic.partitions],
                )
                for topic in request.topics
            ]
        )

    def _answer(self, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
        try:
            partition = self._partitions.find(topic, wanted.partition)
            partition.check_leader_epoch(wanted.current_leader_epoch)
        except OttlaError as error:
            return EpochEndOffset(error.code, wanted.partition)
        end = partition.log.epoch_end(LeaderEpoch(wanted.leader_epoch))
        if end is None:
            return EpochEndOffset(0, wanted.partition)
        return EpochEndOffset(0, wanted.partition, end.epoch, end.end_offset)
