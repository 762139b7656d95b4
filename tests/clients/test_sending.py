"""The ways of a record into its batch: the short one and the long, compiled and not, by threads."""

import sys
import threading
from collections.abc import Iterator
from functools import partial

import pytest

import ottla
from ottla.clients.failures import WrongUse
from ottla.testing import Broker
from support.clients.aio import AioKafkaClient
from support.clients.face import Reading
from support.record_loops import Loops, in_both_ways, using

WAIT_S = 30.0
THREADS = 4
EACH = 1500


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as started:
        yield started


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns as often as they can, so that they meet in the middle of things."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def values(broker: Broker, topic: str, count: int) -> list[bytes | None]:
    client = AioKafkaClient(broker.bootstrap_servers)
    return [record.value for record in client.consume(topic, {0: 0}, Reading(count=count))]


@in_both_ways
@pytest.mark.usefixtures("restless")
def test_threads_that_share_a_producer_each_keep_their_order(broker: Broker, loops: Loops) -> None:
    deliveries: list[list[tuple[bytes, object]]] = [[] for _ in range(THREADS)]
    told: dict[bytes, list[int]] = {}

    def hear(value: bytes, metadata: ottla.RecordMetadata | None) -> None:
        told.setdefault(value, []).append(-1 if metadata is None else metadata.offset)

    def work(who: int, producer: ottla.Producer) -> None:
        for number in range(EACH):
            value = b"%d %d" % (who, number)
            key = b"k" if number % 7 == 0 else None
            headers = {"h": b"v"} if number % 11 == 0 else {}
            call = partial(lambda value, metadata, _: hear(value, metadata), value)
            delivery = producer.send(
                "t", value, key, headers=headers, on_delivery=call if number % 3 == 0 else None
            )
            deliveries[who].append((value, delivery))

    with using(loops), ottla.Producer(broker.bootstrap_servers, batch_size=3000) as producer:
        threads = [threading.Thread(target=work, args=(who, producer)) for who in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
        producer.flush()
        places = [
            [(value, delivery.result(WAIT_S).offset) for value, delivery in sent]  # type: ignore[attr-defined]
            for sent in deliveries
        ]

    stored = values(broker, "t", THREADS * EACH)
    assert sorted(offset for sent in places for _, offset in sent) == list(range(THREADS * EACH))
    assert all(stored[offset] == value for sent in places for value, offset in sent)
    offsets = {value: offset for sent in places for value, offset in sent}
    assert told == {
        b"%d %d" % (who, number): [offsets[b"%d %d" % (who, number)]]
        for who in range(THREADS)
        for number in range(0, EACH, 3)
    }
    for sent in places:
        assert [offset for _, offset in sent] == sorted(offset for _, offset in sent)


@in_both_ways
def test_whoever_waits_for_memory_does_not_wait_for_linger(broker: Broker, loops: Loops) -> None:
    limit = 100_000
    with (
        using(loops),
        ottla.Producer(
            broker.bootstrap_servers, linger_ms=3_600_000, buffer_memory=limit, max_block_ms=20_000
        ) as producer,
    ):
        for number in range(500):
            producer.send("t", b"%04d" % number + b"." * 996)
            assert producer.metrics().buffered_bytes <= limit
        producer.flush()

    assert [value[:4] for value in values(broker, "t", 500) if value] == [
        b"%04d" % number for number in range(500)
    ]


@pytest.mark.parametrize("strange", [-1, 2**63, "now", 1.5])
def test_a_timestamp_that_is_none_is_refused(broker: Broker, strange: object) -> None:
    with ottla.Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"good").result(WAIT_S)
        with pytest.raises(WrongUse, match="timestamp"):
            producer.send("t", b"bad", timestamp_ms=strange)  # type: ignore[arg-type]
        last = producer.send("t", b"good", timestamp_ms=12345).result(WAIT_S)

    assert (last.offset, last.timestamp_ms) == (1, 12345)


def test_outside_of_a_transaction_the_short_way_is_closed(broker: Broker) -> None:
    with ottla.Producer(broker.bootstrap_servers, transactional_id="x") as producer:
        with producer.transaction():
            sent = [producer.send("t", b"%d" % number) for number in range(1000)]
        with pytest.raises(WrongUse):
            producer.send("t", b"outside")
        producer.begin_transaction()
        producer.send("t", b"aborted")
        producer.abort_transaction()
        with pytest.raises(WrongUse):
            producer.send("t", b"outside")
        with producer.transaction():
            last = producer.send("t", b"after")

    assert [delivery.result(WAIT_S).offset for delivery in sent] == list(range(1000))
    stored = values(broker, "t", 1001)
    assert stored[:1000] == [b"%d" % number for number in range(1000)]
    assert b"outside" not in stored
    assert last.result(WAIT_S).offset > 1000


@pytest.mark.parametrize("given", [b"bytes", bytearray(b"bytes"), memoryview(b"bytes")])
def test_what_is_like_bytes_is_sent_as_it_was(broker: Broker, given: bytes) -> None:
    with ottla.Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"first").result(WAIT_S)
        producer.send("t", given, given)
        if isinstance(given, bytearray):
            given[:] = b"other"

    assert values(broker, "t", 2) == [b"first", b"bytes"]
