"""AddPartitionsToTxn: make partitions part of a transaction, or ask whether they are."""

from __future__ import annotations

from typing import Final

from ottla.broker.request import RequestContext
from ottla.broker.transaction_coordinator import TransactionCoordinator
from ottla.coordination.transaction.adding import Addition
from ottla.coordination.transaction.answers import partitions_added
from ottla.errors import ErrorCode, OttlaError
from ottla.model.ids import ProducerEpoch, ProducerId, TopicPartition
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTransaction,
)

FIRST_VERSION_WITH_MANY: Final = 4


class AddPartitionsToTxnHandler:
    """Adds partitions; brokers add and verify for many transactions in one request."""

    def __init__(self, coordinator: TransactionCoordinator) -> None:
        self._coordinator = coordinator

    async def handle(
        self, request: AddPartitionsToTxnRequest, context: RequestContext
    ) -> AddPartitionsToTxnResponse:
        results = [
            await self._result(transaction, context.version)
            for transaction in _transactions(request, context.version)
        ]
        return _response(results, context.version)

    def refuse(
        self, request: AddPartitionsToTxnRequest, code: ErrorCode
    ) -> AddPartitionsToTxnResponse:
        is_old = not request.transactions
        version = 0 if is_old else FIRST_VERSION_WITH_MANY
        results = [
            partitions_added(each.transactional_id, dict.fromkeys(_partitions(each), code), version)
            for each in _transactions(request, version)
        ]
        response = _response(results, version)
        response.error_code = code
        return response

    async def _result(
        self, transaction: AddPartitionsToTxnTransaction, version: int
    ) -> AddPartitionsToTxnResult:
        addition = Addition(
            transaction.transactional_id,
            ProducerId(transaction.producer_id),
            ProducerEpoch(transaction.producer_epoch),
            _partitions(transaction),
            version,
        )
        try:
            if transaction.verify_only:
                codes = await self._coordinator.verify_committed(addition)
            else:
                codes = await self._coordinator.add(addition)
        except OttlaError as error:
            codes = dict.fromkeys(addition.partitions, int(error.code))
        errors = {partition: ErrorCode.of(code) for partition, code in codes.items()}
        return partitions_added(transaction.transactional_id, errors, version)


def _transactions(
    request: AddPartitionsToTxnRequest, version: int
) -> list[AddPartitionsToTxnTransaction]:
    if version >= FIRST_VERSION_WITH_MANY:
        return request.transactions
    return [
        AddPartitionsToTxnTransaction(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
    ]


def _partitions(transaction: AddPartitionsToTxnTransaction) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.name, index)
        for topic in transaction.topics
        for index in topic.partitions
    )


def _response(results: list[AddPartitionsToTxnResult], version: int) -> AddPartitionsToTxnResponse:
    if version >= FIRST_VERSION_WITH_MANY:
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    (only,) = results
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=only.topic_results)
