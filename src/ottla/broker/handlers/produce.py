"""Produce: append each partition's records, and answer when they are as safe as was asked.

Everything is appended before the first await, so the order of requests on a connection is the
order in the log.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from ottla.broker.partition import Partition
from ottla.broker.partitions import Partitions
from ottla.broker.request import RequestContext
from ottla.errors import (
    ErrorCode,
    OttlaError,
    ProtocolError,
    RequestFailed,
    TimedOut,
    UnsupportedCompression,
)
from ottla.model.ids import Offset, TopicId
from ottla.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.records.batch import ATTRIBUTES_POSITION, MAGIC, MAGIC_POSITION
from ottla.records.compression import COMPRESSION_BITS, Compression

ACKS_NONE: Final = 0
ACKS_LEADER: Final = 1
ACKS_ALL: Final = -1
FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
FIRST_VERSION_WITH_ZSTD: Final = 7

log = logging.getLogger(__name__)

Uncommitted = tuple[Partition, Offset, PartitionProduceResponse]


class ProduceHandler:
    """Appends records."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    async def handle(
        self, request: ProduceRequest, context: RequestContext
    ) -> ProduceResponse | None:
        acks = request.acks
        if not ACKS_ALL <= acks <= ACKS_LEADER:
            return self.refuse(request, ErrorCode.INVALID_REQUIRED_ACKS)
        uncommitted: list[Uncommitted] = []
        topics = []
        for topic in request.topic_data:
            name = topic.name
            if context.version >= FIRST_VERSION_WITH_TOPIC_IDS:
                name = self._name(topic.topic_id)
            answers = [
                self._append(name, data, acks, context.version, uncommitted)
                for data in topic.partition_data
            ]
            topics.append(TopicProduceResponse(topic.name, topic.topic_id, answers))
        if acks == ACKS_ALL and uncommitted:
            await _wait_committed(uncommitted, request.timeout_ms)
        response = ProduceResponse(topics)
        if acks == ACKS_NONE:
            _cut_off_on_error(response)
            return None
        return response

    def refuse(self, request: ProduceRequest, code: ErrorCode) -> ProduceResponse:
        return ProduceResponse(
            [
                TopicProduceResponse(
                    topic.name,
                    topic.topic_id,
                    [
                        PartitionProduceResponse(data.index, code, -1, error_message=code.sentence)
                        for data in topic.partition_data
                    ],
                )
                for topic in request.topic_data
            ]
        )

    def _name(self, topic_id: bytes) -> str:
        try:
            return self._partitions.name_of(TopicId(topic_id))
        except RequestFailed:
            return ""

    def _append(
        self,
        topic: str,
        data: PartitionProduceData,
        acks: int,
        version: int,
        uncommitted: list[Uncommitted],
    ) -> PartitionProduceResponse:
        try:
            if not topic:
                raise RequestFailed(ErrorCode.UNKNOWN_TOPIC_ID)
            partition = self._partitions.find(topic, data.index)
            records = data.records
            if not records:
                raise RequestFailed(ErrorCode.INVALID_RECORD, "there are no records to append")
            if version < FIRST_VERSION_WITH_ZSTD:
                _refuse_zstd(records)
            if acks == ACKS_ALL:
                partition.check_in_sync()
            appended = partition.append(records)
        except OttlaError as error:
            return _failure(data.index, error)
        answer = PartitionProduceResponse(
            data.index, 0, appended.base_offset, appended.append_time_ms, appended.start_offset
        )
        if not partition.is_committed(appended.end_offset):
            uncommitted.append((partition, appended.end_offset, answer))
        return answer


def _failure(index: int, error: OttlaError) -> PartitionProduceResponse:
    answer = PartitionProduceResponse(index, error.code, -1, error_message=str(error))
    if error.code is ErrorCode.INVALID_RECORD:
        answer.record_errors = [BatchIndexAndErrorMessage(0, str(error))]
    return answer


def _refuse_zstd(records: memoryview) -> None:
    """Clients that old would not be able to read back what they send."""
    low_attributes = ATTRIBUTES_POSITION + 1
    if len(records) <= low_attributes or records[MAGIC_POSITION] != MAGIC:
        return
    if records[low_attributes] & COMPRESSION_BITS == Compression.ZSTD:
        raise UnsupportedCompression("zstd needs version 7 of Produce; upgrade the client")


async def _wait_committed(uncommitted: list[Uncommitted], timeout_ms: int) -> None:
    """Waits for all; a partition that fails or is late gets its error in its own answer."""
    deadline = asyncio.get_running_loop().time() + max(0, timeout_ms) / 1000
    for partition, end_offset, answer in uncommitted:
        try:
            await partition.wait_committed(end_offset, deadline)
        except TimedOut:
            answer.error_code = ErrorCode.REQUEST_TIMED_OUT
        except OttlaError as error:
            answer.error_code = error.code
            answer.error_message = str(error)


def _cut_off_on_error(response: ProduceResponse) -> None:
    """With acks=0 there is no answer to put an error in: closing the connection is the answer."""
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code:
                raise ProtocolError(
                    f"an acks=0 append to {topic.name}-{answer.index} failed:"
                    f" {answer.error_message}"
                )
