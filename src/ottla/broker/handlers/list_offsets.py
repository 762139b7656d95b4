"""ListOffsets: the first, the last or the offset of a moment."""

from __future__ import annotations

from typing import Final

import msgspec

from ottla.broker.partition import Partition
from ottla.broker.partitions import Partitions
from ottla.broker.request import RequestContext
from ottla.errors import ErrorCode, OttlaError, RequestFailed
from ottla.model.ids import NO_LEADER_EPOCH, NO_TIMESTAMP, Offset
from ottla.net.turns import Turns
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
READ_COMMITTED: Final = 1
_NOT_FOUND: Final = -1
FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE: Final = 5


class _Found(msgspec.Struct, frozen=True):
    timestamp: int
    offset: int
    leader_epoch: int


class ListOffsetsHandler:
    """Finds offsets."""

    def __init__(self, partitions: Partitions, turns: Turns | None = None) -> None:
        self._partitions = partitions
        self._turns = turns or Turns()

    async def handle(
        self, request: ListOffsetsRequest, context: RequestContext
    ) -> ListOffsetsResponse:
        committed_only = request.isolation_level == READ_COMMITTED
        answered = []
        turn = self._turns.begin()
        for topic in request.topics:
            found = []
            for wanted in topic.partitions:
                found.append(self._answer(topic.name, wanted, context.version, committed_only))
                if turn.is_over:
                    await turn.give_way()
            answered.append(ListOffsetsTopicResponse(topic.name, found))
        return ListOffsetsResponse(topics=answered)

    def refuse(self, request: ListOffsetsRequest, code: ErrorCode) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    topic.name,
                    [
                        ListOffsetsPartitionResponse(wanted.partition_index, code)
                        for wanted in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _answer(
        self, topic: str, wanted: ListOffsetsPartition, version: int, committed_only: bool
    ) -> ListOffsetsPartitionResponse:
        index = wanted.partition_index
        try:
            partition = self._partitions.find(topic, index)
            partition.check_leader_epoch(wanted.current_leader_epoch)
            if version == 0:
                offsets = _old_style(partition, wanted)
                return ListOffsetsPartitionResponse(index, 0, offsets)
            found = _find(partition, wanted.timestamp, committed_only)
            if found.offset < 0 or wanted.timestamp == LATEST:
                _check_end_is_known(partition, version)
        except OttlaError as error:
            return ListOffsetsPartitionResponse(index, error.code)
        return ListOffsetsPartitionResponse(
            index, 0, [], found.timestamp, found.offset, found.leader_epoch
        )


def _find(partition: Partition, timestamp: int, committed_only: bool) -> _Found:
    log = partition.log
    if timestamp == LATEST:
        end = partition.readable_end(committed_only=committed_only)
        return _Found(NO_TIMESTAMP, end, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return _Found(NO_TIMESTAMP, log.start_offset, _epoch_at(partition, log.start_offset))
    if timestamp == MAX_TIMESTAMP:
        found = log.offset_of_max_timestamp()
    elif timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        # Nothing is ever moved to remote storage.
        found = None
    elif timestamp < 0:
        raise RequestFailed(ErrorCode.INVALID_REQUEST, f"{timestamp} is no timestamp")
    else:
        found = log.offset_for_timestamp(timestamp)
        if found is not None and found.offset >= partition.readable_end(
            committed_only=committed_only
        ):
            found = None
    if found is None:
        return _Found(NO_TIMESTAMP, _NOT_FOUND, NO_LEADER_EPOCH)
    return _Found(found.timestamp, found.offset, found.leader_epoch)


def _check_end_is_known(partition: Partition, version: int) -> None:
    """Refuses until a new leader knows how far its predecessor had committed (KIP-207).

    Else a reader that saw the end before the election would see it go back.
    """
    in_sync = partition.in_sync
    if in_sync is not None and partition.log.high_watermark < in_sync.epoch_start_offset:
        is_known_code = version >= FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE
        raise RequestFailed(
            ErrorCode.OFFSET_NOT_AVAILABLE if is_known_code else ErrorCode.LEADER_NOT_AVAILABLE
        )


def _epoch_at(partition: Partition, offset: Offset) -> int:
    return partition.log.epochs.epoch_at(offset)


def _segment_starts(partition: Partition) -> list[Offset]:
    """Newest first."""
    return [segment.base_offset for segment in partition.log.segments][::-1]


def _old_style(partition: Partition, wanted: ListOffsetsPartition) -> list[int]:
    """Version 0 wants the starts of segments, newest first, that are older than the moment."""
    log = partition.log
    if wanted.timestamp == LATEST:
        offsets = [log.high_watermark, *_segment_starts(partition)]
    elif wanted.timestamp == EARLIEST:
        offsets = [log.start_offset]
    else:
        found = log.offset_for_timestamp(wanted.timestamp)
        limit = found.offset if found is not None else log.high_watermark
        offsets = [start for start in _segment_starts(partition) if start <= limit]
    distinct = dict.fromkeys(int(max(offset, log.start_offset)) for offset in offsets)
    return list(distinct)[: max(0, wanted.max_num_offsets)]
