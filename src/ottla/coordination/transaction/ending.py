"""The rules of EndTxn: who may commit or abort what, in both versions of the protocol.

In the first version the epoch stays, so a request can only be judged by the state: the same outcome
again is taken for a retry. A delayed request of one transaction can therefore end the next.

In the second version every ending bumps the epoch. A request with the epoch before is a retry, one
with the current epoch is a new ending, any other is fenced; nothing delayed does any harm.

    state            abort: retry, current     commit: retry, current
    EMPTY            fenced,     aborts        fenced,     invalid
    ONGOING          fenced,     aborts        fenced,     commits
    COMPLETE_ABORT   done,       aborts        invalid,    invalid
    COMPLETE_COMMIT  invalid,    aborts        done,       invalid
    PREPARE_...      wait if it is the same outcome, else invalid; current: wait
"""

from __future__ import annotations

from typing import Final

from ottla.coordination.transaction.holding import check_holder, check_transactional_id
from ottla.coordination.transaction.init import need_producer_id
from ottla.coordination.transaction.state import State
from ottla.coordination.transaction.transaction import (
    CLIENT_EPOCH_MAX,
    FIRST_VERSION,
    SECOND_VERSION,
    Producer,
    Transaction,
    first_of,
)
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.ids import NO_PRODUCER_ID, ProducerEpoch, ProducerId
from ottla.protocol.messages.end_txn import EndTxnRequest

ENDING_BUMPS_FROM: Final = 5
"""From this version of EndTxn on, it is the second version of the protocol."""


def end(
    transaction: Transaction | None,
    request: EndTxnRequest,
    version: int,
    spare_producer_id: ProducerId | None,
    now_ms: int,
) -> Transaction | None:
    """The transaction with its outcome decided; nothing if the request is a retry of one done."""
    check_transactional_id(request.transactional_id)
    asking = Producer(ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch))
    if version < ENDING_BUMPS_FROM:
        transaction = check_holder(transaction, asking)
        if not _may_end_in_first_version(transaction, is_commit=request.committed):
            return None
        holder, client_version = transaction.holder, FIRST_VERSION
    else:
        if transaction is None:
            raise RequestFailed(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if _is_retry(transaction, asking):
            _check_is_done(transaction, is_commit=request.committed)
            return None
        check_holder(transaction, asking)
        _check_may_end(transaction, is_commit=request.committed)
        holder, client_version = _bumped(asking, spare_producer_id), SECOND_VERSION
    return transaction.decided(
        is_commit=request.committed, holder=holder, client_version=client_version, now_ms=now_ms
    )


def time_out(transaction: Transaction, now_ms: int) -> Transaction:
    """The transaction aborted because its time is up.

    Nobody has taken the id over. In the second version its holder, when it comes to abort the
    transaction, learns that this is done and goes on with the new epoch.
    """
    is_second = transaction.client_version >= SECOND_VERSION
    previous = transaction.holder.producer_id if is_second else NO_PRODUCER_ID
    return transaction.fenced(previous_producer_id=previous, now_ms=now_ms)


def _may_end_in_first_version(transaction: Transaction, *, is_commit: bool) -> bool:
    state = transaction.state
    if state is State.ONGOING:
        return True
    if state is State.EMPTY or state.is_commit != is_commit:
        raise RequestFailed(ErrorCode.INVALID_TXN_STATE)
    if state.is_prepared:
        raise RequestFailed(ErrorCode.CONCURRENT_TRANSACTIONS)
    return False


def _is_retry(transaction: Transaction, asking: Producer) -> bool:
    has_ended = transaction.state.is_prepared or transaction.state.is_complete
    return has_ended and asking == transaction.previous


def _check_is_done(transaction: Transaction, *, is_commit: bool) -> None:
    if transaction.state.is_commit != is_commit:
        raise RequestFailed(ErrorCode.INVALID_TXN_STATE)
    if transaction.state.is_prepared:
        raise RequestFailed(ErrorCode.CONCURRENT_TRANSACTIONS)
    if transaction.holder.epoch > CLIENT_EPOCH_MAX:
        # A time-out used the last epoch up: there is nothing to go on with but a new start.
        raise RequestFailed(ErrorCode.PRODUCER_FENCED)


def _check_may_end(transaction: Transaction, *, is_commit: bool) -> None:
    if transaction.state.is_prepared:
        raise RequestFailed(ErrorCode.CONCURRENT_TRANSACTIONS)
    if is_commit and transaction.state is not State.ONGOING:
        raise RequestFailed(ErrorCode.INVALID_TXN_STATE)


def _bumped(holder: Producer, spare_producer_id: ProducerId | None) -> Producer:
    if holder.is_exhausted:
        return first_of(need_producer_id(spare_producer_id))
    return holder.bumped()
