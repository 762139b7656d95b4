"""Fixtures of the transaction battery: a broker with few shards, and a topic of two partitions."""

from collections.abc import Callable, Iterator

import pytest

from ottla.testing import Broker
from support.requests import Place, a_topic
from support.wire import Connection
from transactions.committed_reads import CommittedReader
from transactions.raw_producer import Dialect, RawProducer

FEW_SHARDS = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}

MakeProducer = Callable[..., RawProducer]


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker in this process, with a clock to turn."""
    with Broker(settings=FEW_SHARDS) as started:
        yield started


@pytest.fixture
def places(broker: Broker) -> list[Place]:
    """Two partitions of a topic."""
    with Connection(broker.bootstrap_servers) as connection:
        topic = a_topic(connection, "ledger", partitions=2)
    return [(topic, 0), (topic, 1)]


@pytest.fixture
def reader(broker: Broker) -> Iterator[CommittedReader]:
    """Reads what is committed."""
    opened = CommittedReader(broker.bootstrap_servers)
    yield opened
    opened.close()


@pytest.fixture
def make_producer() -> Iterator[MakeProducer]:
    """Makes producers whose connections are closed after the test."""
    made: list[RawProducer] = []

    def make(
        bootstrap: str, dialect: Dialect, *, name: str = "teller", timeout_ms: int = 60_000
    ) -> RawProducer:
        producer = RawProducer(bootstrap, name, dialect, timeout_ms)
        made.append(producer)
        producer.init()
        return producer

    yield make
    for producer in made:
        producer.close()
