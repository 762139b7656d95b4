"""The brokers' own topics: clients may not write to them, and what stands in them all the same
must not keep a coordinator from being loaded."""

from collections.abc import Callable

import pytest

from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from support.batches import batch
from support.broker_process import BrokerProcess
from support.eventually import eventually
from support.typed_connection import TypedConnection

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
GROUP, TRANSACTIONAL_ID, TOPIC = "a-group", "an-id", "a-topic"
NONE, INVALID_TOPIC_EXCEPTION = 0, 17
ADMIN_CLIENT_ID = "__admin_client"
ONE_PARTITION = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}

NewBroker = Callable[..., BrokerProcess]


def produce(connection: TypedConnection, topic: str, records: bytes, *, version: int = 9) -> int:
    data = PartitionProduceData(index=0, records=memoryview(records))
    request = ProduceRequest(
        acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(topic, partition_data=[data])]
    )
    answer = connection.call(request, version)
    assert isinstance(answer, ProduceResponse)
    return answer.responses[0].partition_responses[0].error_code


def find_coordinators(connection: TypedConnection) -> None:
    """Has both internal topics made, and waits for their coordinators."""

    def found(key_type: int, key: str) -> bool:
        answer = connection.call(
            FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]), 4
        )
        assert isinstance(answer, FindCoordinatorResponse)
        return answer.coordinators[0].error_code == NONE

    eventually(lambda: found(0, GROUP), "the group coordinator")
    eventually(lambda: found(1, TRANSACTIONAL_ID), "the transaction coordinator")


def commit(connection: TypedConnection, offset: int) -> int:
    topic = OffsetCommitRequestTopic(
        name=TOPIC,
        partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)],
    )
    answer = connection.call(OffsetCommitRequest(group_id=GROUP, topics=[topic]), 8)
    assert isinstance(answer, OffsetCommitResponse)
    return answer.topics[0].partitions[0].error_code


def committed(connection: TypedConnection) -> tuple[int, int]:
    """The group's error code and its offset."""
    group = OffsetFetchRequestGroup(group_id=GROUP, topics=None)
    answer = connection.call(OffsetFetchRequest(groups=[group]), 8)
    assert isinstance(answer, OffsetFetchResponse)
    (found,) = answer.groups
    offset = found.topics[0].partitions[0].committed_offset if found.topics else -1
    return found.error_code, offset


def init_producer_id(connection: TypedConnection) -> InitProducerIdResponse:
    request = InitProducerIdRequest(
        transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=60_000
    )
    answer = connection.call(request, 4)
    assert isinstance(answer, InitProducerIdResponse)
    return answer


@pytest.mark.parametrize("topic", [OFFSETS, TRANSACTIONS])
@pytest.mark.parametrize("version", [3, 9, 12])
def test_a_client_may_not_produce_to_an_internal_topic(
    bootstrap: str, topic: str, version: int
) -> None:
    with TypedConnection(bootstrap) as connection:
        find_coordinators(connection)
        code = produce(connection, topic, batch([b"x"], key=b"\0\1"), version=version)
        assert code == INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("topic", [OFFSETS, TRANSACTIONS])
@pytest.mark.parametrize("offset", [0, -1])
def test_a_client_may_not_delete_records_of_an_internal_topic(
    bootstrap: str, topic: str, offset: int
) -> None:
    with TypedConnection(bootstrap) as connection:
        find_coordinators(connection)
        wanted = DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, offset)])
        answer = connection.call(DeleteRecordsRequest(topics=[wanted], timeout_ms=10_000), 2)
        assert isinstance(answer, DeleteRecordsResponse)
        (result,) = answer.topics[0].partitions
        assert (result.error_code, result.low_watermark) == (INVALID_TOPIC_EXCEPTION, -1)


def test_internal_topics_are_not_deleted_by_name_or_by_id(own_broker: NewBroker) -> None:
    broker = own_broker(settings=ONE_PARTITION)
    with TypedConnection(broker.bootstrap_servers) as connection:
        find_coordinators(connection)
        by_name = [DeleteTopicState(name=OFFSETS), DeleteTopicState(name=TRANSACTIONS)]
        answer = connection.call(DeleteTopicsRequest(topics=by_name, timeout_ms=10_000), 6)
        assert isinstance(answer, DeleteTopicsResponse)
        assert [each.error_code for each in answer.responses] == [INVALID_TOPIC_EXCEPTION] * 2
        by_id = [DeleteTopicState(topic_id=each.topic_id) for each in answer.responses]
        answer = connection.call(DeleteTopicsRequest(topics=by_id, timeout_ms=10_000), 6)
        assert isinstance(answer, DeleteTopicsResponse)
        assert INVALID_TOPIC_EXCEPTION in {each.error_code for each in answer.responses}
        assert NONE not in {each.error_code for each in answer.responses}


BAD_RECORDS = {
    "no type": (b"\1", b"x"),
    "an unknown version of a value": (b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\x63"),
    "a key that ends too soon": (b"\0\1\0\x63g", b"\0\3"),
    "a transaction without an end": (b"\0\0\0\1t", b"\0\0\0"),
    "an unknown state of a transaction": (
        b"\0\0\0\1t",
        b"\0\0" + bytes(8) + bytes(2) + bytes(4) + b"\x63" + b"\xff" * 4 + bytes(16),
    ),
    "a member that reads a bad pattern": (b"\0\5\0\1g\0\1m", b"\0\0\0\1\1\2c\2h\1\2[\0\0\0\1\1\0"),
}


def test_a_coordinator_is_loaded_whatever_stands_in_its_log(own_broker: NewBroker) -> None:
    broker = own_broker(settings=ONE_PARTITION)
    with (
        TypedConnection(broker.bootstrap_servers) as connection,
        TypedConnection(broker.bootstrap_servers, client_id=ADMIN_CLIENT_ID) as admin,
    ):
        connection.call(
            CreateTopicsRequest(topics=[CreatableTopic(TOPIC, 1, 1)], timeout_ms=10_000), 7
        )
        find_coordinators(connection)
        assert commit(connection, 17) == NONE
        producer = init_producer_id(connection)
        for topic in (OFFSETS, TRANSACTIONS):
            for key, value in BAD_RECORDS.values():
                assert produce(admin, topic, batch([value, value], key=key)) == NONE
    broker.restart()
    with TypedConnection(broker.bootstrap_servers) as connection:
        find_coordinators(connection)
        assert committed(connection) == (NONE, 17)
        assert commit(connection, 18) == NONE
        again = init_producer_id(connection)
        assert again.error_code == NONE
        assert (again.producer_id, again.producer_epoch) == (producer.producer_id, 1)
    said = [line for line in broker.errors().splitlines() if "cannot be read" in line]
    for topic in (OFFSETS, TRANSACTIONS):
        (line,) = [each for each in said if f"{topic}-0" in each]
        assert "the first at offset " in line
    assert "Traceback" not in broker.errors()
