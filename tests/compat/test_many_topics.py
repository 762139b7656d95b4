"""Metadata with ten thousand topics: made in few requests, listed by every client."""

import asyncio
from collections.abc import Callable

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from support.broker_process import BrokerProcess
from support.clients.confluent import WAIT_SECONDS_MAX, ConfluentClient
from support.clients.face import Reading, ToSend
from support.clients.kafka_python import KafkaPythonClient
from support.requests import TopicWish, create_topics, metadata
from support.wire import Connection

TOPICS, TOPICS_PER_REQUEST = 10_000, 2_000


@pytest.mark.slow
def test_ten_thousand_topics_are_created_listed_and_used(
    own_broker: Callable[..., BrokerProcess],
) -> None:
    broker = own_broker()
    names = [f"topic-{number:05}" for number in range(TOPICS)]
    with Connection(broker.bootstrap_servers, timeout_seconds=60) as connection:
        for start in range(0, TOPICS, TOPICS_PER_REQUEST):
            wishes = [TopicWish(name) for name in names[start : start + TOPICS_PER_REQUEST]]
            assert set(create_topics(connection, *wishes).values()) == {0}
        answer = metadata(connection, None)
        assert set(names) <= set(answer.topics)
        assert all(answer.topics[name] == (0, answer.topics[names[0]][1]) for name in names)
    client = ConfluentClient(broker.bootstrap_servers)
    assert set(names) <= set(client.admin().list_topics(timeout=WAIT_SECONDS_MAX).topics)
    admin = KafkaPythonClient(broker.bootstrap_servers).admin()
    assert set(names) <= set(admin.list_topics())
    admin.close()
    assert set(names) <= set(asyncio.run(listed_by_aiokafka(broker.bootstrap_servers)))
    assert client.produce(names[-1], [ToSend(b"x")]) == [0]
    assert client.consume(names[-1], {0: 0}, Reading(count=1))[0].value == b"x"


async def listed_by_aiokafka(bootstrap: str) -> list[str]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        return list(await admin.list_topics())
    finally:
        await admin.close()
