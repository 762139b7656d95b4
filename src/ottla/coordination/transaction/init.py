"""The rules of InitProducerId: a producer takes over a transactional id, or goes on with it.

Whoever comes without a producer id takes the id over: an open transaction is aborted first, or kept
on request, and the one before is fenced. Whoever comes with the pair it holds goes on after an
error; with the pair it held just before, it did not get our answer and gets it again.
"""

from __future__ import annotations

from ottla.coordination.transaction.holding import check_transactional_id
from ottla.coordination.transaction.state import State
from ottla.coordination.transaction.transaction import (
    CLIENT_EPOCH_MAX,
    TIMEOUT_NEVER_MS,
    Producer,
    Transaction,
    first_of,
)
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.ids import NO_PRODUCER_ID, ProducerEpoch, ProducerId
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.settings.coordination import TransactionSettings

_NO_EPOCH = -1


def check_init(request: InitProducerIdRequest, settings: TransactionSettings) -> int:
    """The time-out the request asks for, if all of it is acceptable."""
    check_transactional_id(request.transactional_id)
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == _NO_EPOCH):
        raise RequestFailed(ErrorCode.INVALID_REQUEST, "a producer id needs its epoch")
    if request.enable2_pc:
        if not settings.transaction_two_phase_commit_enable:
            raise RequestFailed(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return TIMEOUT_NEVER_MS
    timeout_ms = request.transaction_timeout_ms
    if not 0 < timeout_ms <= settings.transaction_max_timeout_ms:
        raise RequestFailed(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    return timeout_ms


def init(
    transaction: Transaction | None,
    request: InitProducerIdRequest,
    timeout_ms: int,
    new_producer_id: ProducerId | None,
    now_ms: int,
) -> Transaction:
    """What follows: EMPTY with the new holder, ONGOING if kept for it, or PREPARE_ABORT first."""
    if transaction is None:
        assert request.transactional_id
        producer = first_of(need_producer_id(new_producer_id))
        return Transaction(request.transactional_id, producer, timeout_ms, now_ms)
    expected = _expected(request)
    _check_expected(transaction, expected)
    if transaction.state.is_prepared:
        raise RequestFailed(ErrorCode.CONCURRENT_TRANSACTIONS)
    previous = NO_PRODUCER_ID if expected is None else transaction.holder.producer_id
    if transaction.state is State.ONGOING and not request.keep_prepared_txn:
        return transaction.fenced(previous_producer_id=previous, now_ms=now_ms)
    holder = _next_holder(transaction, expected, new_producer_id)
    if holder == transaction.holder:
        previous = transaction.previous_producer_id
    give = transaction.kept_for if transaction.state is State.ONGOING else transaction.given_to
    return give(holder, previous_producer_id=previous, timeout_ms=timeout_ms, now_ms=now_ms)


def need_producer_id(producer_id: ProducerId | None) -> ProducerId:
    """The producer id that was reserved; without one the client has to try again."""
    if producer_id is None:
        raise RequestFailed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "no producer id is at hand")
    return producer_id


def _expected(request: InitProducerIdRequest) -> Producer | None:
    if request.producer_id == NO_PRODUCER_ID:
        return None
    return Producer(ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch))


def _check_expected(transaction: Transaction, expected: Producer | None) -> None:
    if expected is None:
        return
    is_known = expected in (transaction.holder, transaction.previous)
    if not is_known or expected.epoch > CLIENT_EPOCH_MAX:
        raise RequestFailed(ErrorCode.PRODUCER_FENCED)


def _next_holder(
    transaction: Transaction, expected: Producer | None, new_producer_id: ProducerId | None
) -> Producer:
    holder = transaction.holder
    is_retry = expected is not None and expected == transaction.previous
    if is_retry and holder.epoch <= CLIENT_EPOCH_MAX:
        return holder
    if holder.is_exhausted:
        return first_of(need_producer_id(new_producer_id))
    return holder.bumped()
