"""Transactions: list and describe them, see who writes to partitions, end one.

Where one hangs, and why, is decided in `hanging_transactions`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.clients.client import Client
from ottla.clients.coordinators import Coordinated, find_coordinator
from ottla.clients.failures import (
    TopicNotFound,
    TransactionNotFound,
    check_answer,
    refusal,
)
from ottla.errors import ErrorCode
from ottla.model.ids import BrokerId, Offset, ProducerEpoch, ProducerId, TopicPartition
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from ottla.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "PrepareEpochFence",
    "Dead",
)
"""The names by which brokers list and filter."""
PARTITIONS_A_REQUEST: Final = 1000
TAKEOVER_TIMEOUT_MS_MAX: Final = 60_000
"""Every broker allows a transaction so long."""
_DURATION_FROM: Final = 1
_PATTERN_FROM: Final = 2
"""The first versions of ListTransactions that filter by these."""


@dataclass(frozen=True, slots=True)
class TransactionFilter:
    """Which transactional ids to list: those that pass everything; the empty one passes all."""

    states: tuple[str, ...] = ()
    producer_ids: tuple[ProducerId, ...] = ()
    longer_than_ms: int | None = None
    pattern: str | None = None
    """A regular expression for the whole id."""


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id in a list."""

    id: str
    producer_id: ProducerId
    state: str
    coordinator: BrokerId


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transactional id as its coordinator has it."""

    id: str
    coordinator: BrokerId
    state: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    timeout_ms: int
    started_ms: int | None
    """None where no transaction is under way."""
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class PartitionProducer:
    """A producer that a partition remembers."""

    partition: TopicPartition
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    """-1 where no coordinator has ended a transaction of it here."""
    transaction_start: Offset | None
    """Where its open transaction begins; None if it has none."""


async def list_transactions(
    client: Client, wanted: TransactionFilter | None = None
) -> list[TransactionListing]:
    """The transactional ids of all coordinators, by name."""
    wanted = wanted or TransactionFilter()
    request = ListTransactionsRequest(
        state_filters=list(wanted.states),
        producer_id_filters=[int(each) for each in wanted.producer_ids],
        duration_filter=-1 if wanted.longer_than_ms is None else wanted.longer_than_ms,
        transactional_id_pattern=wanted.pattern,
    )
    at_least = 0 if wanted.longer_than_ms is None else _DURATION_FROM
    if wanted.pattern:
        at_least = _PATTERN_FROM

    async def ask(broker: BrokerId) -> list[TransactionListing]:
        response = await client.call(
            request, ListTransactionsResponse, to=broker, at_least=at_least
        )
        check_answer(response.error_code, f"the transactions of broker {broker}")
        return [
            TransactionListing(
                row.transactional_id, ProducerId(row.producer_id), row.transaction_state, broker
            )
            for row in response.transaction_states
        ]

    async def attempt() -> list[TransactionListing]:
        brokers = (await client.refresh()).brokers
        answers = await asyncio.gather(*(ask(broker) for broker in brokers))
        return [listed for answer in answers for listed in answer]

    return sorted(await client.retrying(attempt), key=lambda listed: listed.id)


async def describe_transaction(client: Client, transactional_id: str) -> TransactionDescription:
    """One transactional id as it is now; TransactionNotFound if nobody knows it."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])

    async def attempt() -> TransactionDescription:
        coordinator = await find_coordinator(client, Coordinated.TRANSACTION, transactional_id)
        response = await client.call(request, DescribeTransactionsResponse, to=coordinator)
        for row in response.transaction_states:
            if row.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                break
            check_answer(row.error_code, f"transactional id {transactional_id!r}")
            started_ms = row.transaction_start_time_ms
            return TransactionDescription(
                id=row.transactional_id,
                coordinator=coordinator,
                state=row.transaction_state,
                producer_id=ProducerId(row.producer_id),
                producer_epoch=ProducerEpoch(row.producer_epoch),
                timeout_ms=row.transaction_timeout_ms,
                started_ms=started_ms if started_ms >= 0 else None,
                partitions=tuple(
                    sorted(
                        TopicPartition(topic.topic, partition)
                        for topic in row.topics
                        for partition in topic.partitions
                    )
                ),
            )
        raise TransactionNotFound(transactional_id)

    return await client.retrying(attempt)


async def describe_producers(
    client: Client, partitions: Iterable[TopicPartition]
) -> list[PartitionProducer]:
    """The producers that partitions remember, by partition and producer id."""
    wanted = sorted(set(partitions))

    async def attempt() -> list[PartitionProducer]:
        by_leader: dict[BrokerId, list[TopicPartition]] = {}
        for partition in wanted:
            by_leader.setdefault(await client.leader(partition), []).append(partition)
        answers = await asyncio.gather(
            *(
                _ask_producers(client, leader, asked[start : start + PARTITIONS_A_REQUEST])
                for leader, asked in by_leader.items()
                for start in range(0, len(asked), PARTITIONS_A_REQUEST)
            )
        )
        return [producer for answer in answers for producer in answer]

    topics = sorted({partition.topic for partition in wanted})
    found = await client.retrying(attempt, topics=topics)
    return sorted(found, key=lambda producer: (producer.partition, producer.producer_id))


async def abort_in_partition(client: Client, producer: PartitionProducer) -> None:
    """Ends a producer's open transaction in one partition, over its coordinator's head."""
    partition = producer.partition
    request = WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                transaction_result=False,
                topics=[
                    WritableTxnMarkerTopic(
                        name=partition.topic, partition_indexes=[partition.partition]
                    )
                ],
                # No lower than what the partition has seen, or it takes us for a replaced one.
                coordinator_epoch=max(0, producer.coordinator_epoch),
            )
        ]
    )

    async def attempt() -> None:
        leader = await client.leader(partition)
        response = await client.call(request, WriteTxnMarkersResponse, to=leader)
        for marker in response.markers:
            for topic in marker.topics:
                for row in topic.partitions:
                    check_answer(row.error_code, f"partition {partition}")

    await client.retrying(attempt, topics=[partition.topic])


async def take_over(client: Client, transaction: TransactionDescription) -> None:
    """Aborts whatever is open under a transactional id, and fences its producer."""
    timeout_ms = min(transaction.timeout_ms, TAKEOVER_TIMEOUT_MS_MAX)
    request = InitProducerIdRequest(
        transactional_id=transaction.id, transaction_timeout_ms=max(1, timeout_ms)
    )

    async def attempt() -> None:
        coordinator = await find_coordinator(client, Coordinated.TRANSACTION, transaction.id)
        response = await client.call(request, InitProducerIdResponse, to=coordinator)
        check_answer(response.error_code, f"transactional id {transaction.id!r}")

    await client.retrying(attempt)


async def _ask_producers(
    client: Client, leader: BrokerId, partitions: Sequence[TopicPartition]
) -> list[PartitionProducer]:
    asked: dict[str, list[int]] = {}
    for partition in partitions:
        asked.setdefault(partition.topic, []).append(partition.partition)
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=name, partition_indexes=rows) for name, rows in asked.items()]
    )
    response = await client.call(request, DescribeProducersResponse, to=leader)
    found: list[PartitionProducer] = []
    for topic in response.topics:
        for row in topic.partitions:
            partition = TopicPartition(topic.name, row.partition_index)
            if row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise TopicNotFound(partition.topic, partition.partition)
            if row.error_code:
                raise refusal(row.error_code, f"partition {partition}", row.error_message)
            found += [
                PartitionProducer(
                    partition=partition,
                    producer_id=ProducerId(state.producer_id),
                    producer_epoch=ProducerEpoch(state.producer_epoch),
                    last_sequence=state.last_sequence,
                    last_timestamp_ms=state.last_timestamp,
                    coordinator_epoch=state.coordinator_epoch,
                    transaction_start=_start(state.current_txn_start_offset),
                )
                for state in row.active_producers
            ]
    return found


def _start(offset: int) -> Offset | None:
    return Offset(offset) if offset >= 0 else None
