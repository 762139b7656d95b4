"""Offsets of partitions: the first, the end, the one at a time; and moving the first forward."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ottla.clients.client import Client
from ottla.clients.failures import TopicNotFound, check_answer
from ottla.errors import ErrorCode
from ottla.model.ids import BrokerId, Offset, TopicPartition
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

EARLIEST: Final = -2
LATEST: Final = -1
MAX_TIMESTAMP: Final = -3
"""Instead of a timestamp: the record with the greatest one."""
TIMEOUT_MS: Final = 30_000
_READ_UNCOMMITTED: Final = 0
_READ_COMMITTED: Final = 1
_LIST_VERSION_MIN: Final = 1
"""The first that answers one offset a partition."""
_MAX_TIMESTAMP_VERSION: Final = 7


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """An offset with the timestamp of its record; -1 each where there is none."""

    offset: Offset
    timestamp_ms: int = -1


async def list_offsets(
    client: Client, topic: str, timestamps: Mapping[int, int], *, committed_only: bool = False
) -> dict[int, ListedOffset]:
    """For each partition the first offset at or after a timestamp, or one of the three special
    ones.

    With `committed_only` the end is where an open transaction begins.
    """
    isolation = _READ_COMMITTED if committed_only else _READ_UNCOMMITTED

    async def attempt() -> dict[int, ListedOffset]:
        by_leader = await _by_leader(client, topic, timestamps)
        answers = await asyncio.gather(
            *(
                _ask_leader(
                    client, leader, _question(topic, {p: timestamps[p] for p in asked}, isolation)
                )
                for leader, asked in by_leader.items()
            )
        )
        return {partition: listed for answer in answers for partition, listed in answer.items()}

    return await client.retrying(attempt, topics=[topic])


async def offset_ranges(
    client: Client, topic: str, partitions: Iterable[int], *, committed_only: bool = False
) -> dict[int, tuple[Offset, Offset]]:
    """For each partition the range [start, end) of offsets a reader can have."""
    wanted = list(partitions)
    starts, ends = await asyncio.gather(
        list_offsets(client, topic, dict.fromkeys(wanted, EARLIEST)),
        list_offsets(client, topic, dict.fromkeys(wanted, LATEST), committed_only=committed_only),
    )
    return {partition: (starts[partition].offset, ends[partition].offset) for partition in wanted}


async def delete_records(
    client: Client, topic: str, before: Mapping[int, int]
) -> dict[int, Offset]:
    """Deletes what comes before an offset (-1: everything); returns the new first offsets."""

    async def attempt() -> dict[int, Offset]:
        by_leader = await _by_leader(client, topic, before)
        answers = await asyncio.gather(
            *(
                _delete_on_leader(client, leader, topic, {p: before[p] for p in partitions})
                for leader, partitions in by_leader.items()
            )
        )
        return {partition: first for answer in answers for partition, first in answer.items()}

    return await client.retrying(attempt, topics=[topic])


async def _by_leader(
    client: Client, topic: str, partitions: Iterable[int]
) -> dict[BrokerId, list[int]]:
    by_leader: dict[BrokerId, list[int]] = {}
    for partition in partitions:
        leader = await client.leader(TopicPartition(topic, partition))
        by_leader.setdefault(leader, []).append(partition)
    return by_leader


def _question(topic: str, timestamps: Mapping[int, int], isolation: int) -> ListOffsetsRequest:
    partitions = [
        ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        for partition, timestamp in timestamps.items()
    ]
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[ListOffsetsTopic(name=topic, partitions=partitions)],
        timeout_ms=TIMEOUT_MS,
    )


async def _ask_leader(
    client: Client, leader: BrokerId, question: ListOffsetsRequest
) -> dict[int, ListedOffset]:
    asked = [row.timestamp for topic in question.topics for row in topic.partitions]
    at_least = _MAX_TIMESTAMP_VERSION if MAX_TIMESTAMP in asked else _LIST_VERSION_MIN
    response = await client.call(question, ListOffsetsResponse, to=leader, at_least=at_least)
    listed: dict[int, ListedOffset] = {}
    for topic in response.topics:
        for row in topic.partitions:
            check_answer(row.error_code, f"partition {topic.name}-{row.partition_index}")
            listed[row.partition_index] = ListedOffset(Offset(row.offset), row.timestamp)
    return listed


async def _delete_on_leader(
    client: Client, leader: BrokerId, topic: str, before: Mapping[int, int]
) -> dict[int, Offset]:
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=topic,
                partitions=[
                    DeleteRecordsPartition(partition_index=partition, offset=offset)
                    for partition, offset in before.items()
                ],
            )
        ],
        timeout_ms=TIMEOUT_MS,
    )
    response = await client.call(request, DeleteRecordsResponse, to=leader)
    first: dict[int, Offset] = {}
    for row in (row for answer in response.topics for row in answer.partitions):
        if row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise TopicNotFound(topic, row.partition_index)
        check_answer(row.error_code, f"partition {topic}-{row.partition_index}")
        first[row.partition_index] = Offset(row.low_watermark)
    return first
