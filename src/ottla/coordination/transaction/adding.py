"""The rules for adding partitions to a transaction, and for asking whether they were added."""

from __future__ import annotations

from typing import Final

import msgspec

from ottla.coordination.transaction.holding import check_holder, check_transactional_id
from ottla.coordination.transaction.state import State
from ottla.coordination.transaction.transaction import (
    FIRST_VERSION,
    SECOND_VERSION,
    Producer,
    Transaction,
)
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.ids import ProducerEpoch, ProducerId, TopicPartition

_ADDING_IS_IMPLIED_FROM: Final = 5
"""From this version of AddPartitionsToTxn on, it is the second version of the protocol."""


class Addition(msgspec.Struct, frozen=True):
    """Partitions that a producer writes to in its transaction.

    `version` is that of AddPartitionsToTxn. An addition that a Produce (12 or later) or a
    TxnOffsetCommit (5 or later) implies counts as version 5.
    """

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    partitions: tuple[TopicPartition, ...]
    version: int

    @property
    def producer(self) -> Producer:
        return Producer(self.producer_id, self.producer_epoch)


def add(transaction: Transaction | None, addition: Addition, now_ms: int) -> Transaction | None:
    """The transaction with the partitions; nothing if it has them all already."""
    transaction = _check_open(transaction, addition)
    is_under_way = transaction.state is State.ONGOING
    if is_under_way and transaction.partitions.issuperset(addition.partitions):
        return None
    is_second = addition.version >= _ADDING_IS_IMPLIED_FROM
    return transaction.added(
        addition.partitions,
        client_version=SECOND_VERSION if is_second else FIRST_VERSION,
        now_ms=now_ms,
    )


def verify(transaction: Transaction | None, addition: Addition) -> dict[TopicPartition, ErrorCode]:
    """For each partition whether it is in the producer's open transaction."""
    transaction = _check_open(transaction, addition)
    return {
        partition: ErrorCode.NONE
        if partition in transaction.partitions
        else ErrorCode.TRANSACTION_ABORTABLE
        for partition in addition.partitions
    }


def _check_open(transaction: Transaction | None, addition: Addition) -> Transaction:
    check_transactional_id(addition.transactional_id)
    transaction = check_holder(transaction, addition.producer)
    if transaction.state.is_prepared:
        raise RequestFailed(ErrorCode.CONCURRENT_TRANSACTIONS)
    if transaction.is_kept:
        raise RequestFailed(ErrorCode.INVALID_TXN_STATE, "a prepared transaction can only be ended")
    return transaction
