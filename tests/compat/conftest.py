"""The real client libraries as one parameter."""

import pytest

from support.clients.aio import AioKafkaClient
from support.clients.confluent import ConfluentClient
from support.clients.face import Client
from support.clients.kafka_python import KafkaPythonClient

CLIENTS = {
    "confluent": ConfluentClient,
    "kafka_python": KafkaPythonClient,
    "aiokafka": AioKafkaClient,
}


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, bootstrap: str) -> Client:
    """Each of the client libraries in turn."""
    return CLIENTS[request.param](bootstrap)
