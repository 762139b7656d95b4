"""The Arrow lanes and a broker in trouble: nothing is lost, doubled or out of order."""

import threading
from collections.abc import Iterator

import pytest

import ottla
from ottla.clients.arrow.partition_reader import PartitionReader
from ottla.clients.failures import (
    BufferFull,
    DeliveryTimedOut,
    Fault,
    TableNotSent,
    TopicNotFound,
    fault_of,
    is_worth_retrying,
)
from ottla.testing import Broker
from support.eventually import eventually

pyarrow = pytest.importorskip("pyarrow")

QUICK = {"retry_backoff_ms": 5, "retry_backoff_max_ms": 20}
HERE = ottla.TopicPartition("t", 0)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as started:
        yield started


def a_table(start: int, end: int) -> "pyarrow.Table":
    return pyarrow.table({"value": [b"%06d" % number + b"." * 100 for number in range(start, end)]})


def numbers(broker: Broker) -> list[int]:
    table = ottla.read_topic("t", bootstrap_servers=broker.bootstrap_servers, columns=["value"])
    return [int(value[:6]) for value in table["value"].to_pylist()]


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT"])
def test_what_a_retry_can_help_is_retried_in_order(broker: Broker, error: str) -> None:
    with ottla.Producer(broker.bootstrap_servers, batch_size=2000, **QUICK) as producer:
        producer.send_arrow("t", a_table(0, 10))
        broker.faults.fail("Produce", error, times=7)
        sent = producer.send_arrow("t", a_table(10, 1000))
        assert producer.metrics().batches_retried > 0
    assert [(each.start, each.end) for each in sent.partitions[0].ranges] == [(10, 1000)]
    assert numbers(broker) == list(range(1000))


def test_the_first_batch_of_a_producer_goes_alone(broker: Broker) -> None:
    with ottla.Admin(broker.bootstrap_servers) as admin:
        admin.create_topics("t")
    broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=1)
    with ottla.Producer(broker.bootstrap_servers, batch_size=2000, **QUICK) as producer:
        producer.send_arrow("t", a_table(0, 200))
        assert producer.metrics().batches_retried == 1  # else those behind it come back as well
    assert numbers(broker) == list(range(200))


def test_lost_connections_double_nothing(broker: Broker) -> None:
    with ottla.Producer(broker.bootstrap_servers, batch_size=2000, **QUICK) as producer:
        for round_number in range(6):
            broker.faults.drop("Produce", times=1 + round_number % 3)
            start = round_number * 100
            assert producer.send_arrow("t", a_table(start, start + 100)).record_count == 100
    assert numbers(broker) == list(range(600))


def test_a_restart_in_the_middle_of_a_stream_loses_nothing(broker: Broker) -> None:
    def stream() -> Iterator["pyarrow.RecordBatch"]:
        for start in range(0, 600, 100):
            if start == 300:
                broker.restart()
            yield from a_table(start, start + 100).to_batches()

    schema = a_table(0, 1).schema
    with ottla.Producer(broker.bootstrap_servers, **QUICK) as producer:
        producer.send_arrow("t", pyarrow.RecordBatchReader.from_batches(schema, stream()))
    assert numbers(broker) == list(range(600))


def test_a_table_that_is_given_up_says_what_is_written_and_who_is_to_blame(broker: Broker) -> None:
    with ottla.Producer(
        broker.bootstrap_servers, batch_size=2000, delivery_timeout_ms=300, **QUICK
    ) as producer:
        producer.send_arrow("t", a_table(0, 10))
        broker.faults.fail("Produce", "NOT_ENOUGH_REPLICAS", times=100_000)
        with pytest.raises(TableNotSent) as caught:
            producer.send_arrow("t", a_table(10, 500))
    error = caught.value
    assert isinstance(error.cause, DeliveryTimedOut)
    assert (error.sent.record_count, error.failed_count) == (0, 490)
    assert fault_of(error) is Fault.CLUSTER
    assert is_worth_retrying(error)


def test_a_full_buffer_waits_and_then_says_so(broker: Broker) -> None:
    with ottla.Producer(
        broker.bootstrap_servers,
        batch_size=2000,
        buffer_memory=10_000,
        max_block_ms=200,
        delivery_timeout_ms=2000,
        **QUICK,
    ) as producer:
        producer.send_arrow("t", a_table(0, 10))
        broker.faults.fail("Produce", "NOT_ENOUGH_REPLICAS", times=100_000)
        with pytest.raises(TableNotSent) as caught:
            producer.send_arrow("t", a_table(10, 500))
    assert isinstance(caught.value.cause, BufferFull)
    assert 0 < caught.value.failed_count < 490


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "OFFSET_NOT_AVAILABLE"])
def test_a_reader_asks_again_where_that_can_help(broker: Broker, error: str) -> None:
    with ottla.Producer(broker.bootstrap_servers) as producer:
        producer.send_arrow("t", a_table(0, 100))
    broker.faults.fail("Fetch", error, times=3)
    broker.faults.drop("Fetch", times=2)
    with PartitionReader(
        HERE, 0, 100, bootstrap_servers=broker.bootstrap_servers, **QUICK
    ) as reader:
        assert sum(batch.num_rows for batch in reader) == 100


def test_a_reader_goes_on_over_a_restart(broker: Broker) -> None:
    with ottla.Producer(broker.bootstrap_servers, batch_size=1000) as producer:
        producer.send_arrow("t", a_table(0, 500))
    reader = PartitionReader(
        HERE,
        0,
        500,
        bootstrap_servers=broker.bootstrap_servers,
        max_partition_fetch_bytes=1000,
        **QUICK,
    )
    found: list[int] = []
    with reader:
        for batch in reader:
            found += [int(value[:6]) for value in batch["value"].to_pylist()]
            if len(found) in range(100, 110):
                broker.restart()
    assert found == list(range(500))


def test_a_reading_that_fails_at_once_leaves_no_thread(broker: Broker) -> None:
    before = threading.active_count()
    with pytest.raises(TopicNotFound):
        next(ottla.iter_topic("nowhere", bootstrap_servers=broker.bootstrap_servers))
    eventually(lambda: threading.active_count() <= before, "the reader's thread to end")
