"""Reads records of one topic from given offsets on: one long poll at a time with each leader.

Invariants:
1. A partition's position only moves forward, past what was returned; an answer to a question
   about another position is dropped.
2. While records are looked at, the next fetch is already under way: at most one answer a leader
   waits in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.clients.client import Client
from ottla.clients.failures import NoBrokerReachable, check_answer, is_worth_retrying
from ottla.errors import CorruptBatch, OttlaError
from ottla.model.ids import BrokerId, Offset, TopicPartition
from ottla.net.client_connection import ConnectionFailed
from ottla.protocol.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ottla.records.batch import RecordBatch, split
from ottla.records.record import Record

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
_FETCH_VERSION_MIN: Final = 4
"""The first whose answers have batches of format 2."""
_FETCH_GRACE_S: Final = 10.0
_ABORT_MARKER: Final = 0


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How much to ask for at once, and how long the broker may wait for it."""

    wait_ms: int = 500
    bytes_min: int = 1
    bytes_max: int = 16 * 1024 * 1024
    partition_bytes_max: int = 1024 * 1024
    committed_only: bool = False


@dataclass(frozen=True, slots=True)
class Fetched:
    """Records of one partition, in order, and where its end was at that moment."""

    partition: int
    records: list[Record]
    next_offset: Offset
    end_offset: Offset
    """How far a reader may read now: the high watermark, or the last stable offset."""


class Reader:
    """A position in each of some partitions of one topic, and the polls that move them."""

    __slots__ = ("_client", "_failures", "_options", "_pending", "_positions", "_topic", "_trouble")

    def __init__(
        self,
        client: Client,
        topic: str,
        positions: Mapping[int, Offset],
        options: ReadOptions | None = None,
    ) -> None:
        self._client = client
        self._topic = topic
        self._positions = dict(positions)
        self._options = options or ReadOptions()
        self._pending: dict[BrokerId, asyncio.Task[tuple[dict[int, Offset], FetchResponse]]] = {}
        self._failures = 0
        self._trouble: OttlaError | None = None

    @property
    def positions(self) -> Mapping[int, Offset]:
        """The next offset of each partition that is still read."""
        return self._positions

    def stop(self, partition: int) -> None:
        """Reads this partition no further."""
        self._positions.pop(partition, None)

    async def poll(self) -> list[Fetched]:
        """Waits until some leader answers; empty if it has nothing new, or all is stopped."""
        if self._trouble is not None:
            await self._recover(self._trouble)
        await self._fetch_ahead()
        if not self._pending:
            return []
        done, _ = await asyncio.wait(self._pending.values(), return_when=asyncio.FIRST_COMPLETED)
        fetched: list[Fetched] = []
        for leader in [leader for leader, task in self._pending.items() if task in done]:
            fetched += self._take(self._pending.pop(leader))
        if self._trouble is None:
            self._failures = 0
            await self._fetch_ahead()
        return fetched

    async def close(self) -> None:
        """Gives up what is under way."""
        pending = list(self._pending.values())
        self._pending.clear()
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    async def _fetch_ahead(self) -> None:
        """Asks every leader that is not asked already."""
        try:
            by_leader = await self._by_leader()
        except OttlaError as error:
            if not is_worth_retrying(error):
                raise
            await self._recover(error)
            return
        for leader, positions in by_leader.items():
            if leader not in self._pending:
                self._pending[leader] = asyncio.create_task(self._fetch(leader, positions))

    async def _by_leader(self) -> dict[BrokerId, dict[int, Offset]]:
        by_leader: dict[BrokerId, dict[int, Offset]] = {}
        for partition, position in self._positions.items():
            leader = await self._client.leader(TopicPartition(self._topic, partition))
            by_leader.setdefault(leader, {})[partition] = position
        return by_leader

    async def _fetch(
        self, leader: BrokerId, positions: dict[int, Offset]
    ) -> tuple[dict[int, Offset], FetchResponse]:
        topic = await self._client.topic(self._topic)
        options = self._options
        # A broker fills its answer in the order of the question: those furthest behind go first.
        partitions = sorted(positions.items(), key=lambda entry: entry[1])
        request = FetchRequest(
            max_wait_ms=options.wait_ms,
            min_bytes=options.bytes_min,
            max_bytes=options.bytes_max,
            isolation_level=READ_COMMITTED if options.committed_only else READ_UNCOMMITTED,
            topics=[
                FetchTopic(
                    topic=self._topic,
                    topic_id=topic.id,
                    partitions=[
                        FetchPartition(
                            partition=partition,
                            fetch_offset=offset,
                            partition_max_bytes=options.partition_bytes_max,
                        )
                        for partition, offset in partitions
                    ],
                )
            ],
        )
        response = await self._client.call(
            request,
            FetchResponse,
            to=leader,
            at_least=_FETCH_VERSION_MIN,
            timeout_s=options.wait_ms / 1000 + _FETCH_GRACE_S,
        )
        return positions, response

    def _take(self, task: asyncio.Task[tuple[dict[int, Offset], FetchResponse]]) -> list[Fetched]:
        """The records of one answer; trouble that may pass is kept for the next poll."""
        try:
            asked, response = task.result()
            check_answer(response.error_code, f"topic {self._topic!r}")
        except OttlaError as error:
            self._set_trouble(error)
            return []
        fetched: list[Fetched] = []
        for data in (data for topic in response.responses for data in topic.partitions):
            position = self._positions.get(data.partition_index)
            if position is None or asked.get(data.partition_index) != position:
                continue
            try:
                check_answer(data.error_code, f"partition {self._topic}-{data.partition_index}")
            except OttlaError as error:
                self._set_trouble(error)
                continue
            fetched.append(self._advance(position, data))
        return fetched

    def _advance(self, position: Offset, data: PartitionData) -> Fetched:
        committed_only = self._options.committed_only
        aborted = data.aborted_transactions if committed_only else None
        view = data.records if isinstance(data.records, memoryview) else memoryview(b"")
        records, next_offset = read_records(view, position, aborted or ())
        self._positions[data.partition_index] = next_offset
        is_limited = committed_only and data.last_stable_offset >= 0
        end = data.last_stable_offset if is_limited else data.high_watermark
        return Fetched(data.partition_index, records, next_offset, Offset(end))

    def _set_trouble(self, error: OttlaError) -> None:
        if not is_worth_retrying(error):
            raise error
        self._trouble = error

    async def _recover(self, error: OttlaError) -> None:
        """Waits a little and looks at the cluster anew, unless this has been tried often enough."""
        self._trouble = None
        self._failures += 1
        policy = self._client.options.retries
        if self._failures >= policy.attempts_max:
            raise error
        await asyncio.sleep(policy.wait_s(self._failures))
        try:
            await self._client.refresh([self._topic])
        except (ConnectionFailed, NoBrokerReachable) as still:
            self._trouble = still


def read_records(
    view: memoryview, position: Offset, aborted: Sequence[AbortedTransaction]
) -> tuple[list[Record], Offset]:
    """The records from `position` on, without control and aborted ones; and the next position."""
    records: list[Record] = []
    next_offset = position
    starts = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
    dropped: set[int] = set()
    for batch in split(view, ignore_torn_tail=True):
        if batch.next_offset <= position:
            continue
        if not batch.is_intact():
            raise CorruptBatch(f"the batch at offset {batch.base_offset} arrived damaged")
        while starts and starts[-1].first_offset <= batch.last_offset:
            dropped.add(starts.pop().producer_id)
        next_offset = batch.next_offset
        if batch.is_control:
            _end_transaction(batch, dropped)
        elif not (batch.is_transactional and batch.producer_id in dropped):
            records.extend(record for record in batch.records() if record.offset >= position)
    return records, next_offset


def _end_transaction(batch: RecordBatch, dropped: set[int]) -> None:
    for marker in batch.records():
        if marker.key is not None and int.from_bytes(marker.key[2:4], "big") == _ABORT_MARKER:
            dropped.discard(batch.producer_id)
