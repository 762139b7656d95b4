"""Fetches [start, end) of one partition from its leader, one answer ahead of whoever reads it.

Does not decode: what it hands out are wire batches, of which the first may begin before the start
and the last end after the end.

Invariants:
1. At most one answer waits and one is asked for: memory is bounded by twice `fetch_bytes`, or by
   twice the largest batch, where that is larger.
2. The range is read without gaps or not at all: an offset the log does not have any more is an
   error, never a jump.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from ottla.clients.arrow.read_plan import ReadPlan
from ottla.clients.client import Client
from ottla.clients.consumer.fetcher import FETCH_LANE
from ottla.clients.consumer.subscription import Chunk
from ottla.clients.consumer.unreadable import UnreadableBatch, sound_batches
from ottla.clients.failures import RecordsGone, check_answer
from ottla.clients.offsets import offset_ranges
from ottla.errors import ErrorCode, TimedOut
from ottla.model.ids import TopicPartition
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ottla.records.arrow_decode import Window
from ottla.records.batch import RecordBatch

_FETCH_VERSION_MIN: Final = 4
"""The first whose answers have batches of format 2."""
_GRACE_S: Final = 10.0
_ANSWER_OVERHEAD_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class RangeAnswer:
    """What one fetch brought: none of aborted transactions, no markers; and where to go on."""

    batches: list[RecordBatch]
    next_offset: int


class RangeFetcher:
    """The fetches of one range. Made, used and closed on one loop."""

    __slots__ = ("_client", "_next", "_plan", "_position", "where", "window")

    def __init__(
        self, client: Client, where: TopicPartition, window: Window, plan: ReadPlan
    ) -> None:
        self._client = client
        self._plan = plan
        self.where = where
        self.window = window
        self._position = window.start_offset
        self._next: asyncio.Task[RangeAnswer] | None = None

    def fetch_ahead(self) -> None:
        """Asks for what comes next, unless that is done already or there is nothing."""
        if self._next is None and self._position < self.window.end_offset:
            self._next = asyncio.create_task(self._fetch(self._position))

    async def next_batches(self) -> list[RecordBatch] | None:
        """The next batches, perhaps none of them readable; None at the end."""
        self.fetch_ahead()
        if self._next is None:
            return None
        answer = await self._next
        self._next = None
        self._position = answer.next_offset
        self.fetch_ahead()
        return answer.batches

    async def close(self) -> None:
        """Gives up what is under way."""
        if self._next is not None:
            self._next.cancel()
            await asyncio.gather(self._next, return_exceptions=True)
            self._next = None

    async def _fetch(self, position: int) -> RangeAnswer:
        """Asks until something comes; every single question is repeated as the client's are."""
        deadline = time.monotonic() + self._plan.timeout_s
        while True:
            data = await self._client.retrying(
                lambda: self._ask(position), topics=[self.where.topic]
            )
            answer = self._answer(data, position)
            if answer.next_offset > position:
                return answer
            if time.monotonic() > deadline:
                raise TimedOut(
                    f"{self.where}: nothing at offset {position} after "
                    f"{self._plan.timeout_s:g} s; the end is {data.high_watermark}, and "
                    f"{self.window.end_offset} was wanted"
                )

    def _answer(self, data: PartitionData, position: int) -> RangeAnswer:
        view = data.records
        if not isinstance(view, memoryview) or not len(view):
            return RangeAnswer([], position)
        sound, damage = sound_batches(view)
        found = [batch for batch in sound if batch.next_offset > position]
        if not found:
            if damage is not None:
                raise UnreadableBatch(self.where, (position, position + 1), damage, bytes(view))
            return RangeAnswer([], position)
        aborted = data.aborted_transactions if self._plan.committed_only else None
        chunk = Chunk(found, aborted or (), len(view))
        batches = []
        while (batch := chunk.next_batch()) is not None:
            batches.append(batch)
        return RangeAnswer(batches, chunk.end_offset)

    async def _ask(self, position: int) -> PartitionData:
        leader = await self._client.leader(self.where)
        topic = await self._client.topic(self.where.topic)
        wait_ms = self._plan.wait_ms
        response = await self._client.call(
            FetchRequest(
                max_wait_ms=wait_ms,
                min_bytes=1,
                max_bytes=self._plan.fetch_bytes + _ANSWER_OVERHEAD_BYTES,
                isolation_level=1 if self._plan.committed_only else 0,
                topics=[
                    FetchTopic(
                        topic=self.where.topic,
                        topic_id=topic.id,
                        partitions=[
                            FetchPartition(
                                partition=self.where.partition,
                                fetch_offset=position,
                                partition_max_bytes=self._plan.fetch_bytes,
                            )
                        ],
                    )
                ],
            ),
            FetchResponse,
            to=leader,
            at_least=_FETCH_VERSION_MIN,
            timeout_s=wait_ms / 1000
            + max(_GRACE_S, self._client.options.connection.request_timeout_s),
            lane=FETCH_LANE,
        )
        return await self._checked(response, position)

    async def _checked(self, response: FetchResponse, position: int) -> PartitionData:
        check_answer(response.error_code, f"partition {self.where}")
        rows = [row for topic in response.responses for row in topic.partitions]
        data = rows[0] if rows else PartitionData(partition_index=self.where.partition)
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            number = self.where.partition
            ranges = await offset_ranges(self._client, self.where.topic, [number])
            raise RecordsGone(self.where, position, *ranges[number])
        check_answer(data.error_code, f"partition {self.where}")
        return data
