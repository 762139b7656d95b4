"""Waits for records: a fetch that brokers answer when there is something, or after a while.

Spark asks an idle query's source for its latest offset again and again. Waiting here is what makes
that cheap, and a record is seen as soon as it is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from ottla.clients.client import Client
from ottla.clients.consumer.fetcher import FETCH_LANE
from ottla.clients.group_offsets import by_topic
from ottla.errors import OttlaError
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)

_FETCH_VERSION_MIN: Final = 4
_GRACE_S: Final = 10.0


async def wait_for_records(
    client: Client, ends: Mapping[TopicPartition, int], *, wait_ms: int, committed_only: bool
) -> bool:
    """Whether a partition has grown beyond its end within `wait_ms`; returns as soon as it has.

    Trouble is no reason to wait, nor to fail: whoever asks for offsets next finds out.
    """
    try:
        asked = await _by_leader(client, ends)
    except OttlaError:
        return True
    isolation = 1 if committed_only else 0
    tasks = [
        asyncio.create_task(_ask(client, leader, topics, wait_ms, isolation))
        for leader, topics in asked.items()
    ]
    try:
        for answer in asyncio.as_completed(tasks):
            if await answer:
                return True
        return False
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _by_leader(
    client: Client, ends: Mapping[TopicPartition, int]
) -> dict[BrokerId, list[FetchTopic]]:
    asked: dict[BrokerId, list[FetchTopic]] = {}
    for name, rows in by_topic(ends).items():
        topic = await client.topic(name)
        of_topic: dict[BrokerId, list[FetchPartition]] = {}
        for where in rows:
            # The least there is: a broker sends one batch all the same.
            wanted = FetchPartition(
                partition=where.partition, fetch_offset=ends[where], partition_max_bytes=1
            )
            of_topic.setdefault(await client.leader(where), []).append(wanted)
        for leader, partitions in of_topic.items():
            fetched = FetchTopic(topic=name, topic_id=topic.id, partitions=partitions)
            asked.setdefault(leader, []).append(fetched)
    return asked


async def _ask(
    client: Client, leader: BrokerId, topics: list[FetchTopic], wait_ms: int, isolation: int
) -> bool:
    """Whether the leader has anything to say before the time is over."""
    request = FetchRequest(
        max_wait_ms=wait_ms, min_bytes=1, max_bytes=1, isolation_level=isolation, topics=topics
    )
    try:
        response = await client.call(
            request,
            FetchResponse,
            to=leader,
            at_least=_FETCH_VERSION_MIN,
            timeout_s=wait_ms / 1000 + _GRACE_S,
            lane=FETCH_LANE,
        )
    except OttlaError:
        return True
    rows = [row for topic in response.responses for row in topic.partitions]
    return bool(response.error_code) or any(row.error_code or row.records for row in rows)
