"""Appends ready record batches to partitions under one producer's name.

Invariants:
1. A partition has one batch on its way at a time, so order holds without a producer id as well.
2. With one, a batch is sent again under the same sequence, and is stored once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from msgspec.structs import replace

from ottla.clients.client import Client
from ottla.clients.failures import BrokerTooOld, check_answer, refusal
from ottla.clients.producer.settings import ProducerSettings
from ottla.errors import ErrorCode, OttlaError, RequestFailed
from ottla.model.ids import NO_PRODUCER_ID, TopicPartition
from ottla.protocol.message import VERSION_MAX
from ottla.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.records.batch import SEQUENCES, TRANSACTIONAL_BIT, RecordBatch
from ottla.records.builder import NO_PRODUCER, ProducerStamp, header_of, seal
from ottla.spark.row_encoder import EncodedRun
from ottla.spark.staged_batches import StagedBatches

_PRODUCE_VERSION_MIN: Final = 7
"""The first that takes every codec."""
EARLIER_TRANSACTIONS_VERSION: Final = 11
"""In newer versions a partition joins a transaction by being written to."""
_GRACE_S: Final = 5.0
_REQUEST_TIMEOUT_MS: Final = 30_000


@dataclass(frozen=True, slots=True)
class Signature:
    """In whose name batches are appended."""

    stamp: ProducerStamp = NO_PRODUCER
    transactional_id: str | None = None
    version_max: int = VERSION_MAX


class BatchAppender:
    """Keeps each partition's next sequence. Used on one loop."""

    __slots__ = ("_client", "_sequences", "_settings", "_signature", "record_count")

    def __init__(self, client: Client, settings: ProducerSettings, signature: Signature) -> None:
        self._client = client
        self._settings = settings
        self._signature = signature
        self._sequences: dict[TopicPartition, int] = {}
        self.record_count = 0

    async def append(self, runs: Iterable[EncodedRun]) -> None:
        """Returns when everything is acknowledged: partitions side by side, each in order."""
        by_partition: dict[TopicPartition, list[EncodedRun]] = {}
        for run in runs:
            by_partition.setdefault(run.where, []).append(run)
        tasks = [
            asyncio.create_task(self._append_in_order(where, mine))
            for where, mine in by_partition.items()
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _append_in_order(self, where: TopicPartition, runs: list[EncodedRun]) -> None:
        for run in runs:
            batches = iter(run.batches)
            is_staged = isinstance(run.batches, StagedBatches)
            while True:
                next_one = partial(next, batches, None)
                batch = await asyncio.to_thread(next_one) if is_staged else next_one()
                if batch is None:
                    break
                await self._append_batch(where, batch)
            self.record_count += run.record_count

    async def _append_batch(self, where: TopicPartition, batch: bytearray) -> None:
        sequence = self._sequences.get(where, 0)
        if self._signature.stamp.producer_id != NO_PRODUCER_ID:
            sign(batch, replace(self._signature.stamp, base_sequence=sequence))
        await self._client.retrying(lambda: self._produce(where, batch), topics=[where.topic])
        count = RecordBatch(memoryview(batch)).record_count
        self._sequences[where] = (sequence + count) % SEQUENCES

    async def _produce(self, where: TopicPartition, batch: bytearray) -> None:
        topic = await self._client.topic(where.topic)
        connection = await self._client.connection_to(await self._client.leader(where))
        data = PartitionProduceData(index=where.partition, records=memoryview(batch))
        request = ProduceRequest(
            transactional_id=self._signature.transactional_id,
            acks=self._settings.acks_number,
            timeout_ms=_REQUEST_TIMEOUT_MS,
            topic_data=[
                TopicProduceData(name=where.topic, topic_id=topic.id, partition_data=[data])
            ],
        )
        if self._settings.acks_number == 0:
            await connection.send(request, at_least=_PRODUCE_VERSION_MIN)
            return
        response = await connection.call(
            request,
            ProduceResponse,
            at_least=_PRODUCE_VERSION_MIN,
            at_most=self._signature.version_max,
            timeout_s=_REQUEST_TIMEOUT_MS / 1000 + _GRACE_S,
        )
        _check(response, where)


def sign(batch: bytearray, stamp: ProducerStamp) -> None:
    """Writes the producer into a batch that has none, in place."""
    view = RecordBatch(memoryview(batch))
    header = replace(
        header_of(view),
        attributes=view.attributes | (TRANSACTIONAL_BIT if stamp.is_transactional else 0),
        producer_id=stamp.producer_id,
        producer_epoch=stamp.producer_epoch,
        base_sequence=stamp.base_sequence,
    )
    seal(batch, header, view.compression)


async def idempotent_signature(client: Client) -> Signature:
    """A producer id of its own for whoever writes without transactions; none where there is none.

    Without one a batch whose answer was lost may be stored twice.
    """

    async def attempt() -> InitProducerIdResponse:
        response = await client.call(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000),
            InitProducerIdResponse,
        )
        check_answer(response.error_code, "a producer id")
        return response

    try:
        response = await client.retrying(attempt)
    except BrokerTooOld:
        return Signature()
    except RequestFailed as error:
        if error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return Signature()
        raise
    return Signature(ProducerStamp(response.producer_id, response.producer_epoch, 0))


def _check(response: ProduceResponse, where: TopicPartition) -> None:
    rows: list[PartitionProduceResponse] = [
        row for topic in response.responses for row in topic.partition_responses
    ]
    if len(rows) != 1 or rows[0].index != where.partition:
        raise refusal(ErrorCode.UNKNOWN_SERVER_ERROR, f"partition {where}", "no answer for it")
    row = rows[0]
    if row.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
        return
    raise _refusal(row, where)


def _refusal(row: PartitionProduceResponse, where: TopicPartition) -> OttlaError:
    reasons = [error.batch_index_error_message for error in row.record_errors]
    reason = next((reason for reason in reasons if reason), row.error_message)
    if row.error_code == ErrorCode.MESSAGE_TOO_LARGE:
        reason = "the topic takes no batch so large: set kafka.batch.size to less than its limit"
    return refusal(row.error_code, f"partition {where}", reason)
