"""Fixtures of the transaction battery: a broker with few shards, and a topic of two partitions."""

from collections.abc import Iterator

import pytest

from ottla.testing import Broker
from support.proxy import Proxy
from support.requests import Place, a_topic
from support.wire import Connection
from transactions.committed_reads import CommittedReader
from transactions.raw_producer import Dialect, RawProducer

FEW_SHARDS = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}


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


class Stage:
    """What most tests need: a broker, two partitions, a reader of them, and producers."""

    def __init__(self, broker: Broker, places: list[Place], reader: CommittedReader) -> None:
        self.broker = broker
        self.places = places
        self.reader = reader
        self._made: list[RawProducer] = []

    def producer(
        self,
        dialect: Dialect,
        *,
        name: str = "teller",
        timeout_ms: int = 60_000,
        through: Proxy | None = None,
    ) -> RawProducer:
        """A producer that has taken its transactional id over."""
        bootstrap = (through or self.broker).bootstrap_servers
        producer = RawProducer(bootstrap, name, dialect, timeout_ms)
        self._made.append(producer)
        producer.init()
        return producer

    def committed(self) -> list[list[bytes]]:
        """The committed values of both partitions, once no transaction is open there."""
        self.reader.wait_stable(*self.places)
        return [self.reader.read(place).values for place in self.places]

    def close(self) -> None:
        for producer in self._made:
            producer.close()


@pytest.fixture
def stage(broker: Broker, places: list[Place], reader: CommittedReader) -> Iterator[Stage]:
    made = Stage(broker, places, reader)
    yield made
    made.close()
