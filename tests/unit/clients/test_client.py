"""Finding brokers, agreeing on versions, going to the leader, trying again."""

import asyncio

import pytest

from ottla.clients.address import Address
from ottla.clients.client import Client, ClientOptions
from ottla.clients.cluster import describe_cluster
from ottla.clients.failures import BrokerTooOld, NoBrokerReachable, TopicNotFound
from ottla.clients.sender import NewRecord, Sender, SendOptions
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.ids import TopicPartition
from ottla.protocol.api import APIS, ApiKey
from ottla.protocol.message import VersionRange
from ottla.protocol.messages.init_producer_id import InitProducerIdResponse
from ottla.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.records.batch import RecordBatch, split


def test_the_first_address_that_answers_is_used(a_broker, quick: ClientOptions) -> None:
    async def main() -> None:
        async with a_broker() as broker:
            places = [Address("127.0.0.1", 1), broker.address]
            async with Client(places, quick) as client:
                assert (await client.topic("t")).name == "t"

    asyncio.run(main())


def test_when_no_address_answers_the_error_says_why_for_each(quick: ClientOptions) -> None:
    async def main() -> None:
        async with Client([Address("127.0.0.1", 1), Address("127.0.0.1", 2)], quick) as client:
            with pytest.raises(NoBrokerReachable) as caught:
                await client.refresh()
            assert "127.0.0.1:1" in str(caught.value)
            assert "127.0.0.1:2" in str(caught.value)

    asyncio.run(main())


def test_an_older_broker_is_spoken_to_in_its_own_versions(a_broker, quick: ClientOptions) -> None:
    async def main() -> None:
        async with a_broker() as broker:
            broker.offered[ApiKey.METADATA] = VersionRange(0, 4)
            async with Client([broker.address], quick) as client:
                await client.refresh()
            assert broker.versions_seen(ApiKey.METADATA) == [4]

    asyncio.run(main())


def test_error_35_makes_the_client_ask_again_in_the_version_offered(
    a_broker, quick: ClientOptions
) -> None:
    async def main() -> None:
        async with a_broker() as broker:
            broker.offered[ApiKey.API_VERSIONS] = VersionRange(0, 2)
            broker.answers[ApiKey.API_VERSIONS] = lambda request, version: broker.api_versions(
                error_code=35 if version > 2 else 0
            )
            async with Client([broker.address], quick) as client:
                await client.refresh()
            newest = APIS[ApiKey.API_VERSIONS].stable_versions.last
            assert broker.versions_seen(ApiKey.API_VERSIONS) == [newest, 2]
            assert broker.connections == 1

    asyncio.run(main())


def test_a_broker_that_closes_when_asked_for_versions_is_taken_for_an_old_one(
    a_broker, quick: ClientOptions
) -> None:
    async def main() -> None:
        async with a_broker() as broker:
            broker.answers[ApiKey.API_VERSIONS] = lambda request, version: None
            async with Client([broker.address], quick) as client:
                with pytest.raises(BrokerTooOld, match=r"Kafka 0\.10"):
                    await client.refresh()
            newest = APIS[ApiKey.API_VERSIONS].stable_versions.last
            assert broker.versions_seen(ApiKey.API_VERSIONS) == [newest, 0]

    asyncio.run(main())


def test_an_unknown_topic_or_partition_is_said_at_once(a_broker, quick: ClientOptions) -> None:
    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            with pytest.raises(TopicNotFound):
                await client.retrying(lambda: client.topic("typo"))
            with pytest.raises(TopicNotFound, match="partition 7"):
                await client.leader(TopicPartition("t", 7))
            assert len(broker.versions_seen(ApiKey.METADATA)) == 2

    asyncio.run(main())


def test_a_partition_without_a_leader_is_worth_a_retry(a_broker, quick: ClientOptions) -> None:
    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            broker.leader = -1
            with pytest.raises(RequestFailed) as caught:
                await client.leader(TopicPartition("t", 0))
            assert caught.value.code is ErrorCode.LEADER_NOT_AVAILABLE
            broker.leader = 1
            assert await client.leader(TopicPartition("t", 0)) == 1

    asyncio.run(main())


def test_a_lost_connection_is_opened_again(a_broker, quick: ClientOptions) -> None:
    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            metadata = broker.answers[ApiKey.METADATA]
            refusals = iter([None])
            broker.answers[ApiKey.METADATA] = lambda request, version: next(
                refusals, metadata(request, version)
            )
            assert (await client.retrying(lambda: client.topic("t"))).name == "t"
            assert broker.connections == 2

    asyncio.run(main())


def test_callers_at_the_same_time_share_one_connection(a_broker, quick: ClientOptions) -> None:
    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            await asyncio.gather(*(client.refresh(["t"]) for _ in range(20)))
            assert broker.connections == 1

    asyncio.run(main())


def test_the_cluster_is_described_from_metadata_where_the_broker_is_too_old(
    a_broker, quick: ClientOptions
) -> None:
    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            del broker.offered[ApiKey.DESCRIBE_CLUSTER]
            cluster = await describe_cluster(client)
            assert (cluster.id, cluster.controller) == ("scripted", 1)

    asyncio.run(main())


def produced(index: int, error: ErrorCode = ErrorCode.NONE, offset: int = 0) -> ProduceResponse:
    row = PartitionProduceResponse(index=index, error_code=int(error), base_offset=offset)
    return ProduceResponse(responses=[TopicProduceResponse(partition_responses=[row])])


def sent_batches(broker) -> list[RecordBatch]:
    return [
        split(data.records)[0]
        for key, _, request in broker.requests
        if key is ApiKey.PRODUCE
        for topic in request.topic_data
        for data in topic.partition_data
    ]


def with_producer_id(broker) -> None:
    broker.answers[ApiKey.INIT_PRODUCER_ID] = lambda request, version: InitProducerIdResponse(
        producer_id=5, producer_epoch=0
    )


def test_a_batch_sent_again_is_the_same_batch(a_broker, quick: ClientOptions) -> None:
    """So the broker can tell that it has it already."""

    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            with_producer_id(broker)
            codes = iter([ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT])
            broker.answers[ApiKey.PRODUCE] = lambda request, version: produced(
                0, next(codes, ErrorCode.NONE), offset=9
            )
            sender = await Sender.open(client, "t")
            (sent,) = await sender.send([NewRecord(b"v")])
            assert sent.base_offset == 9
            first, *others = sent_batches(broker)
            assert (first.producer_id, first.base_sequence) == (5, 0)
            assert [bytes(each.view) for each in others] == [bytes(first.view)] * 2

    asyncio.run(main())


def test_sequences_go_on_from_batch_to_batch(a_broker, quick: ClientOptions) -> None:
    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            with_producer_id(broker)
            broker.answers[ApiKey.PRODUCE] = lambda request, version: produced(0)
            sender = await Sender.open(client, "t", SendOptions(batch_bytes_max=200))
            await sender.send([NewRecord(b"x" * 80) for _ in range(5)])
            await sender.send([NewRecord(b"last")])
            batches = sent_batches(broker)
            assert [batch.base_sequence for batch in batches] == [0, 1, 2, 3, 4, 5]

    asyncio.run(main())


def test_a_batch_the_broker_has_already_counts_as_sent(a_broker, quick: ClientOptions) -> None:
    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            with_producer_id(broker)
            broker.answers[ApiKey.PRODUCE] = lambda request, version: produced(
                0, ErrorCode.DUPLICATE_SEQUENCE_NUMBER
            )
            sender = await Sender.open(client, "t")
            (sent,) = await sender.send([NewRecord(b"v")])
            assert sent.base_offset == -1

    asyncio.run(main())


def test_records_of_a_key_stay_together_and_in_order(a_broker, quick: ClientOptions) -> None:
    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            broker.partition_count = 4
            broker.answers[ApiKey.PRODUCE] = lambda request, version: produced(
                request.topic_data[0].partition_data[0].index
            )
            sender = await Sender.open(client, "t", SendOptions(is_idempotent=False))
            await sender.send([NewRecord(b"%d" % n, key=b"k%d" % (n % 7)) for n in range(70)])
            by_key: dict[bytes, list[list[int]]] = {}
            for batch in sent_batches(broker):
                for record in batch.records():
                    by_key.setdefault(record.key, []).append(int(record.value))
            for values in by_key.values():
                assert values == sorted(values)
            assert len(by_key) == 7
            assert len(sent_batches(broker)) <= 4

    asyncio.run(main())


def test_acks_0_waits_for_no_answer(a_broker, quick: ClientOptions) -> None:
    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            broker.answers[ApiKey.PRODUCE] = lambda request, version: b""
            sender = await Sender.open(client, "t", SendOptions(acks=0))
            (sent,) = await sender.send([NewRecord(b"v")])
            assert (sent.record_count, sent.base_offset) == (1, -1)
            await client.refresh()
            assert len(sent_batches(broker)) == 1

    asyncio.run(main())
