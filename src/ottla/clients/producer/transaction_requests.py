"""The wire side of adding partitions and offsets to a transaction: requests, and their answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.clients.consumer.group_place import GroupPlace, OffsetAndMetadata
from ottla.clients.failures import check_answer, refusal
from ottla.clients.group_offsets import by_topic
from ottla.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from ottla.records.builder import ProducerStamp


def add_partitions_request(
    transactional_id: str, identity: ProducerStamp, partitions: Iterable[TopicPartition]
) -> AddPartitionsToTxnRequest:
    """Adds partitions to a transaction of the first version of the protocol."""
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=identity.producer_id,
        v3_and_below_producer_epoch=identity.producer_epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=topic, partitions=[each.partition for each in rows])
            for topic, rows in by_topic(partitions).items()
        ],
    )


def check_added(response: AddPartitionsToTxnResponse, transactional_id: str) -> None:
    """Raises the error that says most: one of the partitions, not that others were spared."""
    codes = [
        row.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for row in topic.results_by_partition
        if row.partition_error_code
    ]
    telling = [code for code in codes if code != ErrorCode.OPERATION_NOT_ATTEMPTED]
    for code in telling or codes:
        raise refusal(code, f"a transaction of {transactional_id!r}")


def offsets_request(
    transactional_id: str,
    identity: ProducerStamp,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    place: GroupPlace,
) -> TxnOffsetCommitRequest:
    """Commits a group's offsets when the transaction commits."""
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=place.group_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        generation_id_or_member_epoch=place.generation,
        member_id=place.member_id,
        group_instance_id=place.instance_id,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=each.partition,
                        committed_offset=offsets[each].offset,
                        committed_leader_epoch=offsets[each].leader_epoch,
                        committed_metadata=offsets[each].metadata,
                    )
                    for each in rows
                ],
            )
            for topic, rows in by_topic(offsets).items()
        ],
    )


def check_offsets(response: TxnOffsetCommitResponse, group_id: str) -> None:
    """Raises the first refusal."""
    for topic in response.topics:
        for row in topic.partitions:
            check_answer(
                row.error_code, f"group {group_id!r} in {topic.name}-{row.partition_index}"
            )
