"""A producer and a broker in trouble: nothing acknowledged is lost, doubled or out of order."""

import os
import threading
import time
from collections.abc import Iterator

import pytest

import ottla
from ottla.clients.failures import (
    BufferFull,
    ClientClosed,
    DeliveryTimedOut,
    Fault,
    Fenced,
    NoBrokerReachable,
    fault_of,
)
from ottla.testing import Broker
from support.clients.aio import AioKafkaClient
from support.clients.face import Reading

WAIT_S = 30.0
QUICK = {"retry_backoff_ms": 5, "retry_backoff_max_ms": 20}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as started:
        yield started


def values(broker: Broker, topic: str, count: int) -> list[bytes | None]:
    client = AioKafkaClient(broker.bootstrap_servers)
    return [record.value for record in client.consume(topic, {0: 0}, Reading(count=count))]


def send_many(producer: ottla.Producer, count: int, start: int = 0) -> list[bytes]:
    sent = [b"%06d" % number + b"." * 200 for number in range(start, start + count)]
    for value in sent:
        producer.send("t", value)
    return sent


@pytest.mark.parametrize(
    "error",
    [
        "NOT_LEADER_OR_FOLLOWER",
        "REQUEST_TIMED_OUT",
        "NOT_ENOUGH_REPLICAS",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "KAFKA_STORAGE_ERROR",
    ],
)
def test_what_a_retry_can_help_is_retried_in_order(broker: Broker, error: str) -> None:
    with ottla.Producer(
        broker.bootstrap_servers, batch_size=1000, linger_ms=0, **QUICK
    ) as producer:
        producer.send("t", b"first").result(WAIT_S)
        broker.faults.fail("Produce", error, times=7)
        sent = send_many(producer, 200)
        producer.flush()
        metrics = producer.metrics()

    assert values(broker, "t", 201) == [b"first", *sent]
    assert metrics.records_failed == 0
    assert metrics.batches_retried > 0


def test_lost_connections_double_nothing(broker: Broker) -> None:
    with ottla.Producer(
        broker.bootstrap_servers, batch_size=1000, linger_ms=0, **QUICK
    ) as producer:
        sent = []
        for round_number in range(10):
            broker.faults.drop("Produce", times=1 + round_number % 3)
            sent += send_many(producer, 50, start=round_number * 50)
            producer.flush()

    assert values(broker, "t", 500) == sent


def test_a_restart_in_the_middle_loses_nothing(broker: Broker) -> None:
    with ottla.Producer(broker.bootstrap_servers, linger_ms=0, **QUICK) as producer:
        sent = send_many(producer, 300)
        broker.restart()
        sent += send_many(producer, 300, start=300)
        producer.flush()
        metrics = producer.metrics()

    assert values(broker, "t", 600) == sent
    assert metrics.records_failed == 0


def test_without_idempotence_order_is_kept_all_the_same(broker: Broker) -> None:
    with ottla.Producer(
        broker.bootstrap_servers, acks="1", batch_size=1000, linger_ms=0, **QUICK
    ) as producer:
        producer.send("t", b"first").result(WAIT_S)
        broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=5)
        sent = send_many(producer, 100)
        producer.flush()

    assert values(broker, "t", 101) == [b"first", *sent]


def test_what_no_retry_can_help_fails_and_the_next_goes_on(broker: Broker) -> None:
    with ottla.Producer(broker.bootstrap_servers, linger_ms=0, **QUICK) as producer:
        producer.send("t", b"first").result(WAIT_S)
        broker.faults.fail("Produce", "TOPIC_AUTHORIZATION_FAILED")
        error = producer.send("t", b"refused").exception(WAIT_S)
        later = producer.send("t", b"later").result(WAIT_S)

    assert error is not None
    assert error.code.name == "TOPIC_AUTHORIZATION_FAILED"
    assert fault_of(error) is Fault.CALLER
    assert later.offset == 1
    assert values(broker, "t", 2) == [b"first", b"later"]


def test_a_record_is_given_up_after_its_time(broker: Broker) -> None:
    with ottla.Producer(
        broker.bootstrap_servers, delivery_timeout_ms=400, linger_ms=0, **QUICK
    ) as producer:
        producer.send("t", b"first").result(WAIT_S)
        broker.faults.fail("Produce", "NOT_ENOUGH_REPLICAS", times=10_000)
        error = producer.send("t", b"late").exception(WAIT_S)
        broker.faults.clear()
        producer.send("t", b"after").result(WAIT_S)

    assert isinstance(error, DeliveryTimedOut)
    assert fault_of(error) is Fault.CLUSTER
    assert values(broker, "t", 2) == [b"first", b"after"]


def test_a_full_buffer_is_an_error_after_max_block(broker: Broker) -> None:
    with ottla.Producer(
        broker.bootstrap_servers,
        buffer_memory=20_000,
        max_block_ms=200,
        delivery_timeout_ms=60_000,
        **QUICK,
    ) as producer:
        producer.send("t", b"first").result(WAIT_S)
        broker.faults.fail("Produce", "NOT_ENOUGH_REPLICAS", times=10_000)
        with pytest.raises(BufferFull):
            send_many(producer, 1000)
        broker.faults.clear()


def test_nobody_there_is_an_error_that_names_the_address() -> None:
    with pytest.raises(NoBrokerReachable, match=r"127\.0\.0\.1:1") as raised:
        ottla.Producer("127.0.0.1:1", max_block_ms=100)

    assert fault_of(raised.value) is Fault.NETWORK


def test_a_producer_that_was_taken_over_is_fenced(broker: Broker) -> None:
    with ottla.Producer(broker.bootstrap_servers, transactional_id="name") as old:
        with old.transaction():
            old.send("t", b"old")
        with ottla.Producer(broker.bootstrap_servers, transactional_id="name") as new:
            with pytest.raises(Fenced), old.transaction():
                old.send("t", b"zombie")
            with new.transaction():
                new.send("t", b"new")


def test_no_thread_is_left_behind(broker: Broker) -> None:
    before = set(threading.enumerate())
    for _ in range(3):
        with ottla.Producer(broker.bootstrap_servers) as producer:
            producer.send("t", b"v").result(WAIT_S)

    assert set(threading.enumerate()) == before


def test_a_forked_process_cannot_use_its_parents_producer(broker: Broker) -> None:
    with ottla.Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"v").result(WAIT_S)
        child = os.fork()
        if child == 0:
            status = 2
            for use in (producer.flush, lambda: producer.send("t", b"child")):
                try:
                    use()
                except ClientClosed:
                    status -= 1
            os._exit(status)
        deadline = time.monotonic() + WAIT_S
        while (answer := os.waitpid(child, os.WNOHANG)) == (0, 0):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        producer.send("t", b"w").result(WAIT_S)

    assert os.waitstatus_to_exitcode(answer[1]) == 0
