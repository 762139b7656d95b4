"""WriteTxnMarkers that were under way for long must not end a transaction that began since."""

import uuid
from typing import TypeVar

import pytest

from ottla.coordination.partitioning import partition_of
from ottla.protocol.message import Message
from ottla.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from support.eventually import eventually
from support.typed_connection import TypedConnection

NONE, INVALID_PRODUCER_EPOCH = 0, 47
OFFSETS = "__consumer_offsets"
M = TypeVar("M", bound=Message)


class Transaction:
    """A producer of the first version of transactions that commits the offsets of a group."""

    def __init__(self, connection: TypedConnection, *, is_consumer_group: bool) -> None:
        self.connection = connection
        name = uuid.uuid4().hex
        self.topic, self.group, self.id = f"topic-{name}", f"group-{name}", f"id-{name}"
        self.member_id, self.member_epoch = "", -1
        connection.call(
            CreateTopicsRequest(topics=[CreatableTopic(self.topic, 1, 1)], timeout_ms=10_000), 7
        )
        eventually(lambda: self._is_found(0, self.group), "the group coordinator")
        eventually(lambda: self._is_found(1, self.id), "the transaction coordinator")
        if is_consumer_group:
            self._join()
        self.producer = self.init()

    def ask(self, request: Message, version: int, answer_class: type[M]) -> M:
        answer = self.connection.call(request, version)
        assert isinstance(answer, answer_class)
        return answer

    def _is_found(self, key_type: int, key: str) -> bool:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        return self.ask(request, 4, FindCoordinatorResponse).coordinators[0].error_code == NONE

    def _join(self) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=uuid.uuid4().hex,
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[self.topic],
            topic_partitions=[],
        )
        answer = self.ask(request, 1, ConsumerGroupHeartbeatResponse)
        assert answer.error_code == NONE, answer
        self.member_id, self.member_epoch = answer.member_id or "", answer.member_epoch

    def init(self) -> InitProducerIdResponse:
        request = InitProducerIdRequest(transactional_id=self.id, transaction_timeout_ms=60_000)
        found: list[InitProducerIdResponse] = []

        def is_done() -> bool:
            found[:] = [self.ask(request, 4, InitProducerIdResponse)]
            return found[0].error_code == NONE

        eventually(is_done, "a producer id")
        return found[0]

    def commit_offset(self, offset: int) -> None:
        producer = self.producer
        adding = AddOffsetsToTxnRequest(
            transactional_id=self.id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            group_id=self.group,
        )
        eventually(
            lambda: self.ask(adding, 3, AddOffsetsToTxnResponse).error_code == NONE,
            "the group to be part of the transaction",
        )
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        commit = TxnOffsetCommitRequest(
            transactional_id=self.id,
            group_id=self.group,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            generation_id_or_member_epoch=self.member_epoch,
            member_id=self.member_id,
            topics=[TxnOffsetCommitRequestTopic(name=self.topic, partitions=[partition])],
        )
        answer = self.ask(commit, 3, TxnOffsetCommitResponse)
        assert answer.topics[0].partitions[0].error_code == NONE, answer

    def end(self, *, is_commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self.id,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            committed=is_commit,
        )
        assert self.ask(request, 3, EndTxnResponse).error_code == NONE

    def marker(self, epoch: int, *, version: int, transaction_version: int = 0) -> int:
        topics = self.ask(
            MetadataRequest(topics=[MetadataRequestTopic(name=OFFSETS)]), 9, MetadataResponse
        ).topics
        partition = partition_of(self.group, len(topics[0].partitions))
        marker = WritableTxnMarker(
            producer_id=self.producer.producer_id,
            producer_epoch=epoch,
            transaction_result=True,
            topics=[WritableTxnMarkerTopic(name=OFFSETS, partition_indexes=[partition])],
            coordinator_epoch=0,
            transaction_version=transaction_version,
        )
        answer = self.ask(
            WriteTxnMarkersRequest(markers=[marker]), version, WriteTxnMarkersResponse
        )
        return answer.markers[0].topics[0].partitions[0].error_code

    def committed(self) -> int:
        group = OffsetFetchRequestGroup(group_id=self.group, topics=None)
        answer = self.ask(OffsetFetchRequest(groups=[group]), 8, OffsetFetchResponse)
        (found,) = answer.groups
        assert found.error_code == NONE
        return found.topics[0].partitions[0].committed_offset if found.topics else -1


@pytest.mark.parametrize("is_consumer_group", [False, True], ids=["simple", "consumer"])
@pytest.mark.parametrize(("version", "transaction_version"), [(1, 0), (2, 0), (2, 1), (2, 2)])
def test_a_late_marker_of_an_earlier_epoch_commits_nothing_of_the_next_transaction(
    bootstrap: str, version: int, transaction_version: int, is_consumer_group: bool
) -> None:
    with TypedConnection(bootstrap) as connection:
        here = Transaction(connection, is_consumer_group=is_consumer_group)
        first = here.producer
        here.commit_offset(1)
        here.end(is_commit=False)
        here.producer = here.init()
        assert here.producer.producer_epoch == first.producer_epoch + 1
        here.commit_offset(2)
        code = here.marker(
            first.producer_epoch, version=version, transaction_version=transaction_version
        )
        assert here.committed() == -1
        assert code == INVALID_PRODUCER_EPOCH
        here.end(is_commit=True)
        eventually(lambda: here.committed() == 2, "the offset of the transaction that was ended")


@pytest.mark.parametrize("is_consumer_group", [False, True], ids=["simple", "consumer"])
def test_a_marker_of_the_second_version_ends_only_a_transaction_of_the_epoch_before(
    bootstrap: str, is_consumer_group: bool
) -> None:
    """A transaction of that version ends with a new epoch: its own is that of another marker."""
    with TypedConnection(bootstrap) as connection:
        here = Transaction(connection, is_consumer_group=is_consumer_group)
        epoch = here.producer.producer_epoch
        here.commit_offset(2)
        assert here.marker(epoch, version=2, transaction_version=2) == INVALID_PRODUCER_EPOCH
        assert here.committed() == -1
        assert here.marker(epoch + 1, version=2, transaction_version=2) == NONE
        assert here.committed() == 2
        assert here.marker(epoch + 1, version=2, transaction_version=2) == NONE, "sent again"
        assert here.marker(epoch, version=2, transaction_version=2) == INVALID_PRODUCER_EPOCH
