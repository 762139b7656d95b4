"""Who may act for a transactional id: the holder of its newest producer id and epoch."""

from __future__ import annotations

from ottla.coordination.transaction.transaction import CLIENT_EPOCH_MAX, Producer, Transaction
from ottla.errors import ErrorCode, RequestFailed


def check_holder(transaction: Transaction | None, asking: Producer) -> Transaction:
    """The transaction, if the one who asks holds it."""
    if transaction is None:
        raise RequestFailed(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if asking != transaction.holder or asking.epoch > CLIENT_EPOCH_MAX:
        raise _not_the_holder(transaction, asking)
    return transaction


def _not_the_holder(transaction: Transaction, asking: Producer) -> RequestFailed:
    """The refusal of one who does not hold the transactional id, or not any more."""
    known = (transaction.holder.producer_id, transaction.producer.producer_id)
    if asking.producer_id not in known:
        return RequestFailed(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    return RequestFailed(ErrorCode.PRODUCER_FENCED)


def check_transactional_id(transactional_id: str | None) -> str:
    """The transactional id, which must not be empty."""
    if not transactional_id:
        raise RequestFailed(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    return transactional_id
