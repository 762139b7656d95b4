"""Cut, frozen and slow networks: what was acknowledged is there, once and in order."""

import asyncio
import gc
import threading
import time
from collections.abc import Iterator

import pyarrow
import pytest

import ottla
import ottla.aio
from clients.network import Network
from ottla.clients.consumer.record import ConsumerRecord
from ottla.clients.failures import DeliveryTimedOut, Fault, SendsFailed, fault_of
from ottla.model.ids import TopicPartition
from ottla.testing import Broker

WAIT_S = 40.0
QUICK = {"retry_backoff_ms": 5, "retry_backoff_max_ms": 50}
PLACE = TopicPartition("t", 0)


@pytest.fixture
def network() -> Iterator[Network]:
    with Network() as made:
        yield made


@pytest.fixture
def broker(network: Network) -> Iterator[Broker]:
    with network.broker() as started:
        network.lead_to(started)
        yield started


def read_all(bootstrap: str, count: int) -> list[bytes]:
    records: list[ConsumerRecord] = []
    deadline = time.monotonic() + WAIT_S
    with ottla.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([PLACE])
        while len(records) < count:
            records += consumer.poll(1.0)
            assert time.monotonic() < deadline, f"{len(records)} of {count}"
        records += consumer.poll(0.1)
    return [record.value for record in records]


def numbered(start: int, end: int) -> list[bytes]:
    return [b"%06d" % number + b"." * 300 for number in range(start, end)]


def test_cuts_lose_double_and_reorder_nothing(network: Network, broker: Broker) -> None:
    sent: list[bytes] = []
    with ottla.Producer(network.address, batch_size=2000, linger_ms=0, **QUICK) as producer:
        for turn in range(15):
            deliveries = [
                producer.send("t", value) for value in numbered(turn * 100, turn * 100 + 100)
            ]
            sent += numbered(turn * 100, turn * 100 + 100)
            deliveries[turn * 3].result(WAIT_S)
            network.cut()
        producer.flush()
        assert producer.metrics().records_failed == 0

    assert read_all(network.address, len(sent)) == sent


def test_a_frozen_network_is_noticed_and_what_was_in_doubt_is_written_once(
    network: Network, broker: Broker
) -> None:
    with ottla.Producer(network.address, linger_ms=0, request_timeout_ms=700, **QUICK) as producer:
        producer.send("t", numbered(0, 1)[0]).result(WAIT_S)
        network.freeze()
        waiting = [producer.send("t", value) for value in numbered(1, 50)]
        deadline = time.monotonic() + WAIT_S
        while not producer.metrics().batches_retried:
            assert time.monotonic() < deadline
        network.heal()
        for delivery in waiting:
            delivery.result(WAIT_S)

    assert read_all(network.address, 50) == numbered(0, 50)


def test_a_frozen_network_does_not_hold_a_record_beyond_its_time(
    network: Network, broker: Broker
) -> None:
    with ottla.Producer(
        network.address, linger_ms=0, request_timeout_ms=300, delivery_timeout_ms=900, **QUICK
    ) as producer:
        producer.send("t", b"first").result(WAIT_S)
        network.freeze()
        error = producer.send("t", b"late").exception(WAIT_S)
        network.heal()
        producer.send("t", b"after").result(WAIT_S)

    assert isinstance(error, DeliveryTimedOut)
    assert fault_of(error) is Fault.NETWORK


def test_a_consumer_goes_on_after_cuts_without_gap_or_repetition(
    network: Network, broker: Broker
) -> None:
    sent = numbered(0, 2000)
    with ottla.Producer(broker.bootstrap_servers, **QUICK) as producer:
        for value in sent:
            producer.send("t", value)
    seen: list[bytes] = []
    deadline = time.monotonic() + WAIT_S
    with ottla.Consumer(
        bootstrap_servers=network.address,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=20_000,
        max_poll_records=50,
        **QUICK,
    ) as consumer:
        consumer.assign([PLACE])
        while len(seen) < 2000:
            seen += [record.value for record in consumer.poll(1.0)]
            if len(seen) % 150 == 0:
                network.cut()
            assert time.monotonic() < deadline, len(seen)

    assert seen == sent


def test_a_slow_network_only_takes_time(network: Network, broker: Broker) -> None:
    with ottla.Producer(network.address, **QUICK) as producer:
        producer.send("t", numbered(0, 1)[0]).result(WAIT_S)
        network.slow_down(0.002)
        for value in numbered(1, 100):
            producer.send("t", value)
        producer.flush()
        assert producer.metrics().records_failed == 0
    assert read_all(network.address, 100) == numbered(0, 100)


@pytest.mark.parametrize("as_tables", [False, True], ids=["rows", "tables"])
def test_what_nobody_acknowledges_arrives_over_a_slow_network_though_the_producer_is_closed(
    network: Network, broker: Broker, as_tables: bool
) -> None:
    """Nobody answers, so what has left the producer is what its sockets have taken."""
    sent = [b"%06d" % number + b"." * 1000 for number in range(6000)]
    with ottla.Producer(network.address, acks="0", batch_size=1_000_000, **QUICK) as producer:
        producer.send("t", b"first").result(WAIT_S)
        network.slow_down(0.00001)
        if as_tables:
            for start in range(0, len(sent), 2000):
                producer.send_arrow("t", pyarrow.table({"value": sent[start : start + 2000]}))
        else:
            for value in sent:
                producer.send("t", value)
    network.heal()
    assert read_all(broker.bootstrap_servers, 6001) == [b"first", *sent]


def test_a_group_survives_a_cut_and_a_restart(network: Network, broker: Broker) -> None:
    sent = numbered(0, 300)
    seen: list[bytes] = []
    how = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 100, "max_poll_records": 20}
    with (
        ottla.Producer(broker.bootstrap_servers, **QUICK) as producer,
        ottla.Consumer(
            "t", bootstrap_servers=network.address, group_id="g", **how, **QUICK
        ) as consumer,
    ):
        for value in sent[:150]:
            producer.send("t", value, partition=0)
        producer.flush()
        deadline = time.monotonic() + WAIT_S
        while len(seen) < 150:
            seen += [record.value for record in consumer.poll(1.0)]
            assert time.monotonic() < deadline
        consumer.commit()
        network.cut()
        broker.restart()
        for value in sent[150:]:
            producer.send("t", value, partition=0)
        while len(seen) < 300:
            seen += [record.value for record in consumer.poll(1.0)]
            assert time.monotonic() < deadline, len(seen)
        consumer.commit()

    assert seen == sent


def test_closing_in_the_middle_of_trouble_leaves_nothing_behind(
    network: Network, broker: Broker
) -> None:
    with ottla.Producer(network.address) as producer:
        producer.send("t", b"v").result(WAIT_S)
    before = {thread.name for thread in threading.enumerate() if "ottla-" in thread.name}
    network.freeze()
    network.heal()

    async def main() -> int:
        producer = ottla.aio.Producer(network.address, **QUICK)
        consumer = ottla.aio.Consumer("t", bootstrap_servers=network.address, group_id="g")
        await producer.start()
        await consumer.start()
        await producer.send("t", b"v")
        await consumer.poll(0.2)
        network.freeze()
        await producer.send("t", b"w")
        with pytest.raises(SendsFailed, match="1 record was not acknowledged"):
            await producer.close(0.2)
        await consumer.close(0.5)
        network.heal()
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 1
    gc.collect()
    after = {thread.name for thread in threading.enumerate() if "ottla-" in thread.name}
    assert after == before
