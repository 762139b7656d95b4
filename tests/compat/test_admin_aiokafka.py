"""Every admin call of aiokafka that concerns topics, configs, records and the cluster."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import InvalidPartitionsError

from support.clients.aio import AioKafkaClient
from support.clients.face import ToSend

NewName = Callable[[], str]

TOPIC_ALREADY_EXISTS, INVALID_TOPIC = 36, 17
TRIES_MAX = 200


@asynccontextmanager
async def an_admin(bootstrap: str) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


async def until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    for _ in range(TRIES_MAX):
        if await condition():
            return
    pytest.fail(f"{what} did not happen")


def test_topics_are_created_listed_described_and_deleted(bootstrap: str, new_name: NewName) -> None:
    async def scenario() -> None:
        topic = new_name()
        async with an_admin(bootstrap) as admin:
            answer = await admin.create_topics([NewTopic(topic, 3, 1)])
            assert answer.topic_errors[0][1] == 0
            again = await admin.create_topics([NewTopic(topic, 3, 1)])
            assert again.topic_errors[0][1] == TOPIC_ALREADY_EXISTS
            bad = await admin.create_topics([NewTopic("no good!", 3, 1)])
            assert bad.topic_errors[0][1] == INVALID_TOPIC

            async def has_partitions() -> bool:
                (described,) = await admin.describe_topics([topic])
                return len(described["partitions"]) == 3

            async def is_gone() -> bool:
                return topic not in await admin.list_topics()

            await until(has_partitions, "three partitions")
            deleted = await admin.delete_topics([topic])
            assert deleted.topic_error_codes[0][1] == 0
            await until(is_gone, "the deletion")

    asyncio.run(scenario())


def test_validate_only_creates_nothing(bootstrap: str, new_name: NewName) -> None:
    async def scenario() -> None:
        topic = new_name()
        async with an_admin(bootstrap) as admin:
            answer = await admin.create_topics([NewTopic(topic, 1, 1)], validate_only=True)
            assert answer.topic_errors[0][1] == 0
            assert topic not in await admin.list_topics()

    asyncio.run(scenario())


def test_assignments_are_taken(bootstrap: str, new_name: NewName) -> None:
    async def scenario() -> None:
        topic = new_name()
        async with an_admin(bootstrap) as admin:
            node = (await admin.describe_cluster())["brokers"][0]["node_id"]
            wish = NewTopic(topic, -1, -1, replica_assignments={0: [node], 1: [node]})
            answer = await admin.create_topics([wish])
            assert answer.topic_errors[0][1] == 0

            async def has_partitions() -> bool:
                (described,) = await admin.describe_topics([topic])
                return len(described["partitions"]) == 2

            await until(has_partitions, "two partitions")

    asyncio.run(scenario())


def test_partitions_are_added(bootstrap: str, new_name: NewName) -> None:
    async def scenario() -> None:
        topic = new_name()
        async with an_admin(bootstrap) as admin:
            await admin.create_topics([NewTopic(topic, 1, 1)])
            await admin.create_partitions({topic: NewPartitions(3)})

            async def has_partitions() -> bool:
                (described,) = await admin.describe_topics([topic])
                return len(described["partitions"]) == 3

            await until(has_partitions, "three partitions")
            with pytest.raises(InvalidPartitionsError):
                await admin.create_partitions({topic: NewPartitions(1)})

    asyncio.run(scenario())


def test_configs_are_described_and_altered(bootstrap: str, new_name: NewName) -> None:
    async def scenario() -> None:
        topic = new_name()
        async with an_admin(bootstrap) as admin:
            wish = NewTopic(topic, 1, 1, topic_configs={"retention.ms": "1234567"})
            await admin.create_topics([wish])

            async def config(name: str) -> str:
                resource = ConfigResource(ConfigResourceType.TOPIC, topic)
                (answer,) = await admin.describe_configs([resource])
                entries = {entry[0]: entry[1] for entry in answer.resources[0][4]}
                return str(entries.get(name))

            async def shows_the_first() -> bool:
                return await config("retention.ms") == "1234567"

            async def shows_the_second() -> bool:
                return await config("max.message.bytes") == "9000"

            await until(shows_the_first, "the created config")
            changes = {"max.message.bytes": "9000"}
            change = ConfigResource(ConfigResourceType.TOPIC, topic, changes)
            (answer,) = await admin.alter_configs([change])
            assert answer.resources[0][0] == 0
            await until(shows_the_second, "the altered config")

    asyncio.run(scenario())


def test_records_are_deleted(bootstrap: str, new_name: NewName) -> None:
    client, topic = AioKafkaClient(bootstrap), new_name()
    client.create_topic(topic)
    client.produce(topic, [ToSend(b"%d" % number) for number in range(5)])

    async def scenario() -> None:
        async with an_admin(bootstrap) as admin:
            place = TopicPartition(topic, 0)
            await admin.delete_records({place: RecordsToDelete(before_offset=2)})

    asyncio.run(scenario())
    assert client.offset_range(topic, 0) == (2, 5)


def test_the_cluster_is_described(bootstrap: str) -> None:
    async def scenario() -> None:
        async with an_admin(bootstrap) as admin:
            cluster = await admin.describe_cluster()
            (broker,) = cluster["brokers"]
            assert f"{broker['host']}:{broker['port']}" == bootstrap
            assert cluster["controller_id"] == broker["node_id"]

    asyncio.run(scenario())
