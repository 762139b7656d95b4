"""The real client libraries as one parameter, and a way to ask what none of them asks."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest

from ottla.clients.address import parse_addresses
from ottla.clients.client import Client as OttlaClient
from ottla.protocol.message import Message
from support.clients.aio import AioKafkaClient
from support.clients.confluent import ConfluentClient
from support.clients.face import Client
from support.clients.kafka_python import KafkaPythonClient

CLIENTS = {
    "confluent": ConfluentClient,
    "kafka_python": KafkaPythonClient,
    "aiokafka": AioKafkaClient,
}
Answer = TypeVar("Answer", bound=Message)
Ask = Callable[[Message, type[Answer]], Answer]


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, bootstrap: str) -> Client:
    """Each of the client libraries in turn."""
    return CLIENTS[request.param](bootstrap)


@pytest.fixture
def ask(bootstrap: str) -> Ask:
    """Sends one request in its latest version."""

    async def asked(request: Message, answer: type[Answer]) -> Answer:
        async with OttlaClient(parse_addresses([bootstrap])) as client:
            return await client.call(request, answer)

    return lambda request, answer: asyncio.run(asked(request, answer))
