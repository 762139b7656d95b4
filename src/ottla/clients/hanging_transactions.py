"""Transactions that are open in a partition though nobody will end them.

Readers of committed records wait at the first of them forever, and compaction stops there. Their
coordinator does not know of them (a write came after the end, from an old client), so that they are
found from the side of the partitions: whoever has an open transaction there is compared with what
the coordinators say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.clients.client import Client
from ottla.clients.failures import NoOpenTransaction, TransactionNotFound
from ottla.clients.transactions import (
    PartitionProducer,
    TransactionDescription,
    TransactionFilter,
    describe_producers,
    describe_transaction,
    list_transactions,
)
from ottla.model.ids import Offset, ProducerId, TopicPartition

GRACE_MS: Final = 60_000
"""Coordinators look for time-outs every few seconds, and then have markers to write."""
_UNDER_WAY: Final = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})


@dataclass(frozen=True, slots=True)
class HangingTransaction:
    """A transaction in one partition, and why nobody will end it."""

    producer: PartitionProducer
    transaction: TransactionDescription | None
    """What a coordinator has under the producer's id; None if it has nothing."""
    reason: str


def reason_it_hangs(
    producer: PartitionProducer, transaction: TransactionDescription | None, now_ms: int
) -> str | None:
    """Why nobody will end a producer's open transaction; None if its coordinator will."""
    if transaction is None:
        return "no coordinator knows its producer"
    if transaction.state not in _UNDER_WAY:
        return f"its coordinator has ended it ({transaction.state})"
    if producer.partition not in transaction.partitions:
        return "its coordinator has a transaction without this partition"
    if transaction.state != "Ongoing" or transaction.started_ms is None:
        return None
    overdue_ms = now_ms - transaction.started_ms - transaction.timeout_ms
    return "it is past its time-out" if overdue_ms > GRACE_MS else None


async def open_transaction_at(
    client: Client, partition: TopicPartition, start_offset: Offset
) -> PartitionProducer:
    """The producer whose open transaction begins there; NoOpenTransaction if none does."""
    for producer in await describe_producers(client, [partition]):
        if producer.transaction_start == start_offset:
            return producer
    raise NoOpenTransaction(partition, start_offset)


async def transactions_of(
    client: Client, producers: Iterable[PartitionProducer]
) -> dict[ProducerId, TransactionDescription]:
    """What the coordinators have under the ids of producers."""
    ids = tuple(sorted({producer.producer_id for producer in producers}))
    if not ids:
        return {}
    listed = await list_transactions(client, TransactionFilter(producer_ids=ids))

    async def describe(transactional_id: str) -> TransactionDescription | None:
        try:
            return await describe_transaction(client, transactional_id)
        except TransactionNotFound:
            return None  # forgotten since it was listed

    described = await asyncio.gather(*(describe(each.id) for each in listed))
    return {each.producer_id: each for each in described if each is not None}


async def find_hanging(
    client: Client, partitions: Sequence[TopicPartition], *, older_than_ms: int, now_ms: int
) -> list[HangingTransaction]:
    """The hanging ones among open transactions that nobody has written to for so long."""
    found = [
        producer
        for producer in await describe_producers(client, partitions)
        if producer.transaction_start is not None
        and now_ms - producer.last_timestamp_ms >= older_than_ms
    ]
    hanging = _judge(found, await transactions_of(client, found), now_ms)
    if not hanging:
        return []
    # One that ended between the two questions looks as if nobody knew it: ask again.
    places = {each.producer.partition for each in hanging}
    still_open = {
        (producer.partition, producer.producer_id, producer.transaction_start)
        for producer in await describe_producers(client, places)
    }
    return [
        each
        for each in hanging
        if (each.producer.partition, each.producer.producer_id, each.producer.transaction_start)
        in still_open
    ]


def _judge(
    producers: Iterable[PartitionProducer],
    transactions: Mapping[ProducerId, TransactionDescription],
    now_ms: int,
) -> list[HangingTransaction]:
    judged = []
    for producer in producers:
        transaction = transactions.get(producer.producer_id)
        reason = reason_it_hangs(producer, transaction, now_ms)
        if reason is not None:
            judged.append(HangingTransaction(producer, transaction, reason))
    return judged
