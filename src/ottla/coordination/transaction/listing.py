"""Descriptions of transactions for DescribeTransactions and ListTransactions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import Final

from ottla.coordination.transaction.state import BY_WIRE_NAME
from ottla.coordination.transaction.transaction import Transaction
from ottla.errors import ErrorCode
from ottla.model.ids import NO_TIMESTAMP
from ottla.protocol.messages import describe_transactions, list_transactions
from ottla.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)

PATTERN_LENGTH_MAX: Final = 1000


def describe(
    transactional_id: str, transaction: Transaction | None
) -> describe_transactions.TransactionState:
    """All there is to say about one transactional id."""
    described = describe_transactions.TransactionState(transactional_id=transactional_id)
    if not transactional_id:
        described.error_code = ErrorCode.INVALID_REQUEST
    elif transaction is None:
        described.error_code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    else:
        described.transaction_state = transaction.state.wire_name
        described.transaction_timeout_ms = transaction.timeout_ms
        described.transaction_start_time_ms = transaction.started_ms
        described.producer_id = transaction.producer.producer_id
        described.producer_epoch = transaction.producer.epoch
        by_topic = groupby(sorted(transaction.partitions), key=lambda partition: partition.topic)
        described.topics = [
            describe_transactions.TopicData(
                topic=topic, partitions=[each.partition for each in partitions]
            )
            for topic, partitions in by_topic
        ]
    return described


def list_matching(
    transactions: Iterable[Transaction], request: ListTransactionsRequest, now_ms: int
) -> ListTransactionsResponse:
    """The transactions that pass every filter of the request; an empty filter passes all."""
    response = ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in BY_WIRE_NAME]
    )
    pattern = _pattern(request.transactional_id_pattern)
    if isinstance(pattern, ErrorCode):
        response.error_code = pattern
        return response
    states = {BY_WIRE_NAME[name] for name in request.state_filters if name in BY_WIRE_NAME}
    producer_ids = set(request.producer_id_filters)
    response.transaction_states = [
        list_transactions.TransactionState(
            transactional_id=each.transactional_id,
            producer_id=each.producer.producer_id,
            transaction_state=each.state.wire_name,
        )
        for each in transactions
        if (not request.state_filters or each.state in states)
        and (not producer_ids or each.producer.producer_id in producer_ids)
        and _has_run_longer(each, request.duration_filter, now_ms)
        and (pattern is None or pattern.fullmatch(each.transactional_id))
    ]
    return response


def _has_run_longer(transaction: Transaction, duration_ms: int, now_ms: int) -> bool:
    if duration_ms < 0:
        return True
    is_started = transaction.started_ms != NO_TIMESTAMP
    return is_started and now_ms - transaction.started_ms > duration_ms


def _pattern(text: str | None) -> re.Pattern[str] | ErrorCode | None:
    """The pattern of transactional ids, in Python's syntax where Kafka's is RE2's."""
    if not text:
        return None
    if len(text) > PATTERN_LENGTH_MAX:
        return ErrorCode.INVALID_REGULAR_EXPRESSION
    try:
        return re.compile(text)
    except re.error:
        return ErrorCode.INVALID_REGULAR_EXPRESSION
