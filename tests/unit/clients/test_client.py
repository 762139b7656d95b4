"""Finding brokers, agreeing on versions, going to the leader, trying again."""

import asyncio

import pytest

from ottla.clients.address import Address
from ottla.clients.broker_connection import ConnectionOptions
from ottla.clients.client import Client, ClientOptions
from ottla.clients.client_metrics import ClientMetrics
from ottla.clients.cluster import describe_cluster
from ottla.clients.failures import BrokerTooOld, NoBrokerReachable, TopicNotFound
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.ids import TopicPartition
from ottla.net.client_connection import ConnectionFailed
from ottla.protocol.api import APIS, ApiKey
from ottla.protocol.message import VersionRange


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


def test_an_address_that_takes_connections_and_says_nothing_is_passed_over(
    a_broker, quick: ClientOptions
) -> None:
    async def main() -> None:
        async with a_broker() as proxy, a_broker() as broker:
            proxy.answers[ApiKey.API_VERSIONS] = lambda request, version: None
            async with Client([proxy.address, broker.address], quick) as client:
                picture = await client.refresh()
                assert [each.address for each in picture.brokers.values()] == [broker.address]
                await client.refresh()
            assert proxy.versions_seen(ApiKey.METADATA) == []

    asyncio.run(main())


def test_a_broker_that_hangs_does_not_keep_clients_from_the_others(a_broker) -> None:
    patient = ClientOptions(ConnectionOptions(request_timeout_s=3600.0))

    async def main() -> None:
        async with a_broker() as hanging, a_broker() as broker:
            hanging.answers[ApiKey.API_VERSIONS] = lambda request, version: b""
            async with Client([hanging.address, broker.address], patient) as client:
                assert (await client.topic("t")).name == "t"
            assert hanging.versions_seen(ApiKey.API_VERSIONS)

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


def test_metrics_tell_how_the_brokers_serve(a_broker, quick: ClientOptions) -> None:
    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            assert client.metrics() == ClientMetrics()
            await client.refresh(["t"])
            await client.refresh(["t"])
            first = client.metrics()
            assert (first.connections_opened, first.requests_answered) == (1, 2)
            assert first.request_latency_max_ms >= first.request_latency_avg_ms > 0
            assert first.connect_max_ms > 0
            metadata = broker.answers[ApiKey.METADATA]

            def held_back(request, version):
                response = metadata(request, version)
                response.throttle_time_ms = 30
                return response

            broker.answers[ApiKey.METADATA] = held_back
            await client.refresh(["t"])
            assert client.metrics().throttled_ms == 30
            broker.answers[ApiKey.METADATA] = lambda request, version: None
            with pytest.raises(ConnectionFailed):
                await client.refresh(["t"])
            assert client.metrics().requests_failed == 1
        async with Client([Address("127.0.0.1", 1)], quick) as client:
            with pytest.raises(NoBrokerReachable):
                await client.refresh()
            assert client.metrics().connections_failed == 1

    asyncio.run(main())
