"""Writes records to one topic: chooses partitions, builds batches, sends them to the leaders.

Invariants:
1. At most one batch of a partition is in flight, so records of a partition keep their order
   through retries.
2. With acks=all, batches carry a producer id and a sequence: one that is sent twice is stored once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from ottla.clients.client import Client
from ottla.clients.failures import BrokerTooOld, TopicNotFound, check_answer, refusal
from ottla.clients.metadata import TopicInfo
from ottla.clients.partitioner import Partitioner
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.ids import NO_PRODUCER_ID, Offset, TopicPartition
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
from ottla.records.batch import SEQUENCES
from ottla.records.builder import NO_PRODUCER, BatchBuilder, ProducerStamp
from ottla.records.compression import Compression
from ottla.records.record import Headers

ACKS_NONE: Final = 0
ACKS_LEADER: Final = 1
ACKS_ALL: Final = -1
UNKNOWN_OFFSET: Final = Offset(-1)
BATCH_RECORDS_MAX: Final = 100_000
_PRODUCE_VERSION_MIN: Final = 3
"""The first that takes batches of format 2."""


class NewRecord(msgspec.Struct, frozen=True, gc=False):
    """A record to be written; partition and timestamp are chosen unless given."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class SendOptions:
    """How records are sent."""

    acks: int = ACKS_ALL
    compression: Compression = Compression.NONE
    compression_level: int | None = None
    batch_bytes_max: int = 512 * 1024
    """A batch is closed before it grows past this, uncompressed; a larger record goes alone."""
    timeout_ms: int = 30_000
    is_idempotent: bool = True


@dataclass(frozen=True, slots=True)
class Sent:
    """One batch and where it went; the offset is -1 where nobody said."""

    partition: int
    record_count: int
    base_offset: Offset
    append_time_ms: int = -1


class Sender:
    """The writer of one topic. Open it, then send."""

    __slots__ = ("_client", "_options", "_partitioner", "_producer", "_sequences", "_topic")

    def __init__(self, client: Client, topic: TopicInfo, options: SendOptions) -> None:
        self._client = client
        self._topic = topic
        self._options = options
        self._partitioner = Partitioner(len(topic.partitions))
        self._producer = NO_PRODUCER
        self._sequences: dict[int, int] = {}

    @classmethod
    async def open(cls, client: Client, topic: str, options: SendOptions | None = None) -> Sender:
        """Looks the topic up and, for acks=all, gets a producer id."""
        options = options or SendOptions()
        sender = cls(client, await client.retrying(lambda: client.topic(topic)), options)
        if options.is_idempotent and options.acks == ACKS_ALL:
            sender._producer = await _new_producer(client)
        return sender

    async def send(self, records: Iterable[NewRecord]) -> list[Sent]:
        """Writes the records: in order within a partition, partitions beside each other."""
        now_ms = time.time_ns() // 1_000_000
        by_partition: dict[int, list[BatchBuilder]] = {}
        for record in records:
            partition = self._partition_of(record)
            builders = by_partition.setdefault(partition, [])
            if not builders or self._is_full(builders[-1], record):
                builders.append(BatchBuilder())
            timestamp_ms = now_ms if record.timestamp_ms is None else record.timestamp_ms
            builders[-1].append(timestamp_ms, record.key, record.value, record.headers)
        sent = await asyncio.gather(
            *(
                self._send_in_order(partition, builders)
                for partition, builders in by_partition.items()
            )
        )
        return [batch for batches in sent for batch in batches]

    def _partition_of(self, record: NewRecord) -> int:
        if record.partition is None:
            return self._partitioner.choose(record.key)
        if not 0 <= record.partition < len(self._topic.partitions):
            raise TopicNotFound(self._topic.name, record.partition)
        return record.partition

    def _is_full(self, builder: BatchBuilder, record: NewRecord) -> bool:
        added = len(record.key or b"") + len(record.value or b"")
        is_full = builder.size_bytes + added > self._options.batch_bytes_max
        return builder.record_count > 0 and (is_full or builder.record_count >= BATCH_RECORDS_MAX)

    async def _send_in_order(self, partition: int, builders: list[BatchBuilder]) -> list[Sent]:
        return [await self._send_batch(partition, builder) for builder in builders]

    async def _send_batch(self, partition: int, builder: BatchBuilder) -> Sent:
        sequence = self._sequences.get(partition, 0)
        batch = builder.build(
            compression=self._options.compression,
            level=self._options.compression_level,
            producer=self._stamp(sequence),
        )
        where = TopicPartition(self._topic.name, partition)

        async def attempt() -> PartitionProduceResponse:
            return await self._produce(where, batch)

        answer = await self._client.retrying(attempt, topics=[where.topic])
        self._sequences[partition] = (sequence + builder.record_count) % SEQUENCES
        return Sent(
            partition=partition,
            record_count=builder.record_count,
            base_offset=Offset(answer.base_offset),
            append_time_ms=answer.log_append_time_ms,
        )

    def _stamp(self, sequence: int) -> ProducerStamp:
        if self._producer.producer_id == NO_PRODUCER_ID:
            return NO_PRODUCER
        return ProducerStamp(self._producer.producer_id, self._producer.producer_epoch, sequence)

    async def _produce(self, where: TopicPartition, batch: bytearray) -> PartitionProduceResponse:
        topic = await self._client.topic(where.topic)
        connection = await self._client.connection_to(await self._client.leader(where))
        data = PartitionProduceData(index=where.partition, records=memoryview(batch))
        request = ProduceRequest(
            acks=self._options.acks,
            timeout_ms=self._options.timeout_ms,
            topic_data=[
                TopicProduceData(name=where.topic, topic_id=topic.id, partition_data=[data])
            ],
        )
        if self._options.acks == ACKS_NONE:
            await connection.send(request, at_least=_PRODUCE_VERSION_MIN)
            return PartitionProduceResponse(index=where.partition, base_offset=UNKNOWN_OFFSET)
        response = await connection.call(
            request,
            ProduceResponse,
            at_least=_PRODUCE_VERSION_MIN,
            timeout_s=self._options.timeout_ms / 1000 + 5,
        )
        return _checked(response, where)


def _checked(response: ProduceResponse, where: TopicPartition) -> PartitionProduceResponse:
    rows = [row for topic in response.responses for row in topic.partition_responses]
    if len(rows) != 1 or rows[0].index != where.partition:
        raise refusal(ErrorCode.UNKNOWN_SERVER_ERROR, f"partition {where}", "no answer for it")
    row = rows[0]
    if row.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
        return PartitionProduceResponse(index=row.index, base_offset=UNKNOWN_OFFSET)
    reasons = [error.batch_index_error_message for error in row.record_errors]
    reason = next((reason for reason in reasons if reason), row.error_message)
    check_answer(row.error_code, f"partition {where}", reason)
    return row


async def _new_producer(client: Client) -> ProducerStamp:
    """A producer id from the cluster; none where the broker has none to give."""

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
        return NO_PRODUCER
    except RequestFailed as error:
        if error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return NO_PRODUCER
        raise
    return ProducerStamp(response.producer_id, response.producer_epoch, 0)
