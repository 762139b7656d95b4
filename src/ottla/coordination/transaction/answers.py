"""The responses of the transaction coordinator, and the error codes each version understands."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Final

from ottla.coordination.transaction.transaction import Transaction
from ottla.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.message import Message
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from ottla.protocol.messages.end_txn import EndTxnResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdResponse

_INIT_KNOWS_FENCED_FROM: Final = 4
_OTHERS_KNOW_FENCED_FROM: Final = 2

_AFTER_FAILED_APPEND: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What a client is told when the coordinator's own log refused the records."""


def initialized(transaction: Transaction) -> InitProducerIdResponse:
    """The pair to write with and, beside it, that of a transaction kept for the caller."""
    response = InitProducerIdResponse(
        producer_id=transaction.holder.producer_id, producer_epoch=transaction.holder.epoch
    )
    if transaction.is_kept:
        response.ongoing_txn_producer_id = transaction.producer.producer_id
        response.ongoing_txn_producer_epoch = transaction.producer.epoch
    return response


def not_initialized(code: ErrorCode, version: int) -> InitProducerIdResponse:
    code = _understood(code, version, _INIT_KNOWS_FENCED_FROM)
    return InitProducerIdResponse(error_code=code, producer_epoch=-1)


def ended(transaction: Transaction) -> EndTxnResponse:
    """The pair to go on with."""
    return EndTxnResponse(
        producer_id=transaction.holder.producer_id, producer_epoch=transaction.holder.epoch
    )


def not_ended(code: ErrorCode, version: int) -> EndTxnResponse:
    return EndTxnResponse(error_code=_understood(code, version, _OTHERS_KNOW_FENCED_FROM))


def offsets_added(code: ErrorCode, version: int) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=_understood(code, version, _OTHERS_KNOW_FENCED_FROM))


def partitions_added(
    transactional_id: str, codes: Mapping[TopicPartition, ErrorCode], version: int
) -> AddPartitionsToTxnResult:
    """The result for one transaction, with a code for each partition."""
    by_topic = groupby(sorted(codes), key=lambda partition: partition.topic)
    return AddPartitionsToTxnResult(
        transactional_id=transactional_id,
        topic_results=[
            AddPartitionsToTxnTopicResult(
                name=topic,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=each.partition,
                        partition_error_code=_understood(
                            codes[each], version, _OTHERS_KNOW_FENCED_FROM
                        ),
                    )
                    for each in partitions
                ],
            )
            for topic, partitions in by_topic
        ],
    )


def not_recorded(response: Message, code: ErrorCode) -> Message:
    """What to answer instead of this response, since the records behind it were not written."""
    code = _AFTER_FAILED_APPEND.get(code, code)
    if isinstance(response, AddPartitionsToTxnResult):
        codes = {
            TopicPartition(topic.name, each.partition_index): code
            for topic in response.topic_results
            for each in topic.results_by_partition
        }
        return partitions_added(response.transactional_id, codes, _OTHERS_KNOW_FENCED_FROM)
    if isinstance(response, InitProducerIdResponse):
        return not_initialized(code, _INIT_KNOWS_FENCED_FROM)
    if isinstance(response, AddOffsetsToTxnResponse):
        return offsets_added(code, _OTHERS_KNOW_FENCED_FROM)
    assert isinstance(response, EndTxnResponse), f"no such answer: {response!r}"
    return not_ended(code, _OTHERS_KNOW_FENCED_FROM)


def _understood(code: ErrorCode, version: int, knows_fenced_from: int) -> ErrorCode:
    """Older clients do not know PRODUCER_FENCED, but act right on the code that it came from."""
    if code is ErrorCode.PRODUCER_FENCED and version < knows_fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
