"""DeleteRecords: move a log's start, so that what lies before is gone for every reader."""

from __future__ import annotations

from typing import Final

from ottla.broker.housekeeping import Housekeeping
from ottla.broker.partitions import Partitions
from ottla.broker.request import RequestContext
from ottla.cluster.image import INTERNAL_TOPICS
from ottla.errors import ErrorCode, InvalidTopic, OffsetOutOfRange, OttlaError, PolicyViolation
from ottla.model.ids import Offset
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

TO_HIGH_WATERMARK: Final = -1
_NO_WATERMARK: Final = -1


class DeleteRecordsHandler:
    """Deletes from the front."""

    def __init__(self, partitions: Partitions, housekeeping: Housekeeping) -> None:
        self._partitions = partitions
        self._housekeeping = housekeeping

    async def handle(
        self, request: DeleteRecordsRequest, _context: RequestContext
    ) -> DeleteRecordsResponse:
        response = DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    topic.name, [self._delete(topic.name, wanted) for wanted in topic.partitions]
                )
                for topic in request.topics
            ]
        )
        # Not before the new start is on disk: what is gone must not come back after a crash.
        await self._housekeeping.write_checkpoints()
        return response

    def refuse(self, request: DeleteRecordsRequest, code: ErrorCode) -> DeleteRecordsResponse:
        return DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    topic.name,
                    [
                        DeleteRecordsPartitionResult(wanted.partition_index, _NO_WATERMARK, code)
                        for wanted in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _delete(self, topic: str, wanted: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
        index = wanted.partition_index
        try:
            partition = self._partitions.find(topic, index)
            if topic in INTERNAL_TOPICS:
                raise InvalidTopic(f"{topic} is an internal topic: its records are the brokers'")
            partition.check_leads()
            log = partition.log
            if not log.settings.is_deleted_by_retention:
                raise PolicyViolation(
                    f"{topic} is only compacted; deleting records needs delete in cleanup.policy"
                )
            end = log.high_watermark
            offset = end if wanted.offset == TO_HIGH_WATERMARK else Offset(wanted.offset)
            if not 0 <= offset <= end:
                raise OffsetOutOfRange(offset, log.start_offset, end)
            log.delete_records_before(offset)
            partition.start_moved()
        except OttlaError as error:
            return DeleteRecordsPartitionResult(index, _NO_WATERMARK, error.code)
        return DeleteRecordsPartitionResult(index, log.start_offset)
