"""One client in a process of its own: produces or consumes so many records, and tells what it cost.

    python bench/one_client.py '{"client": "aiokafka", "direction": "produce", ...}'

Prints a JSON line. Warms up with a few records first. Imports no client but its own, so that peak
memory is this client's. Settings are the clients' defaults but for what must be alike: acks=all, 5
ms of linger, no compression, and for those that would send 16 KB, batches of 128 KB. Consumers are
assigned a partition; no group.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

LINGER_MS = 5
BATCH_BYTES = 128 * 1024
POLL_RECORDS = 10_000
ARROW_ROWS = 50_000
IDLE_SECONDS_MAX = 20.0
FLUSH_SECONDS_MAX = 120.0
VALUES = 997
"""So many different values are sent: one would stay in the processor's nearest cache."""
WARM_UP_RECORDS = 1000
"""So many go first, for what happens once: imports, codecs, the first look at the cluster."""
CONFLUENT_QUEUE = {"queued.min.messages": 5_000_000, "fetch.queue.backoff.ms": 1}
"""Otherwise the client rests for a second whenever 100,000 records or 64 MB wait in it."""
NOT_THERE = 3
"""How the process ends where this installation has no such client."""


@dataclass(frozen=True, slots=True)
class Order:
    """What one process is asked to do."""

    client: str
    direction: str
    bootstrap: str
    topic: str
    records: int
    value_bytes: int


class Section:
    """Wall and CPU time from its construction to `stop`."""

    def __init__(self) -> None:
        self._cpu = time.process_time()
        self._wall = time.perf_counter()

    def stop(self) -> dict[str, float]:
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return {"wall_s": wall, "cpu_s": cpu}


class Short(Exception):
    """Fewer records came, or went, than were asked for."""


def values(order: Order) -> Iterator[bytes]:
    """As many values as are to be sent, of the right size."""
    made = [b"%08d" % number + b"x" * (order.value_bytes - 8) for number in range(VALUES)]
    return islice(cycle(made), order.records)


def check(order: Order, records: int, size_bytes: int) -> None:
    """What was consumed is all there, every value with its bytes."""
    if records < order.records or size_bytes != records * order.value_bytes:
        raise Short(f"{records} of {order.records} records came, with {size_bytes} bytes")


# --- ottla ----------------------------------------------------------------------------------------


def without_accelerator() -> None:
    """As if there had been no C compiler when Ottla was installed."""
    import ottla

    folder = Path(ottla.__file__).parent / "records" / "accelerated"
    for compiled in folder.glob("*_compiled*"):
        name = compiled.name.partition(".")[0]
        sys.modules[f"ottla.records.accelerated.{name}"] = None  # type: ignore[assignment]


def ottla_produce(order: Order) -> dict[str, float]:
    import ottla

    with ottla.Producer(order.bootstrap, linger_ms=LINGER_MS) as producer:
        producer.partitions_for(order.topic)
        send, topic = producer.send, order.topic
        section = Section()
        for value in values(order):
            send(topic, value)
        producer.flush()
        figures = section.stop()
        _all_sent(order, producer.metrics().records_sent)
    return figures


def ottla_consume(order: Order) -> dict[str, float]:
    import ottla

    with ottla.Consumer(bootstrap_servers=order.bootstrap) as consumer:
        section = Section()
        where = ottla.TopicPartition(order.topic, 0)
        consumer.assign([where])
        consumer.seek_to_beginning(where)
        seen = size = 0
        while seen < order.records:
            records = consumer.poll(IDLE_SECONDS_MAX, max_records=POLL_RECORDS)
            if not records:
                break
            seen += len(records)
            size += sum([len(record.value) for record in records])
        figures = section.stop()
    check(order, seen, size)
    return figures


def ottla_iterate(order: Order) -> dict[str, float]:
    import ottla

    with ottla.Consumer(bootstrap_servers=order.bootstrap) as consumer:
        section = Section()
        where = ottla.TopicPartition(order.topic, 0)
        consumer.assign([where])
        consumer.seek_to_beginning(where)
        seen = size = 0
        for record in consumer:
            seen += 1
            size += len(record.value)
            if seen == order.records:
                break
        figures = section.stop()
    check(order, seen, size)
    return figures


async def ottla_aio_produce(order: Order) -> dict[str, float]:
    import ottla.aio

    async with ottla.aio.Producer(order.bootstrap, linger_ms=LINGER_MS) as producer:
        await producer.partitions_for(order.topic)
        send, topic = producer.send, order.topic
        section = Section()
        for value in values(order):
            await send(topic, value)
        await producer.flush()
        figures = section.stop()
        _all_sent(order, producer.metrics().records_sent)
    return figures


async def ottla_aio_consume(order: Order) -> dict[str, float]:
    import ottla.aio

    async with ottla.aio.Consumer(bootstrap_servers=order.bootstrap) as consumer:
        section = Section()
        where = ottla.TopicPartition(order.topic, 0)
        consumer.assign([where])
        consumer.seek_to_beginning(where)
        seen = size = 0
        while seen < order.records:
            records = await consumer.poll(IDLE_SECONDS_MAX, max_records=POLL_RECORDS)
            if not records:
                break
            seen += len(records)
            size += sum([len(record.value) for record in records])
        figures = section.stop()
    check(order, seen, size)
    return figures


def arrow_produce(order: Order) -> dict[str, float]:
    import pyarrow

    import ottla

    with ottla.Producer(order.bootstrap, linger_ms=LINGER_MS) as producer:
        send: Any = getattr(producer, "send_arrow", None)
        if send is None:
            sys.exit(NOT_THERE)
        producer.partitions_for(order.topic)
        all_values = list(values(order))
        tables = [
            pyarrow.table({"value": pyarrow.array(all_values[first : first + ARROW_ROWS])})
            for first in range(0, order.records, ARROW_ROWS)
        ]
        del all_values
        section = Section()
        for table in tables:
            send(order.topic, table)
        producer.flush()
        figures = section.stop()
        _all_sent(order, producer.metrics().records_sent)
    return figures


def arrow_consume(order: Order) -> dict[str, float]:
    import pyarrow.compute

    import ottla

    with ottla.Consumer(bootstrap_servers=order.bootstrap) as consumer:
        poll: Any = getattr(consumer, "poll_arrow", None)
        if poll is None:
            sys.exit(NOT_THERE)
        section = Section()
        where = ottla.TopicPartition(order.topic, 0)
        consumer.assign([where])
        consumer.seek_to_beginning(where)
        seen = size = 0
        while seen < order.records:
            table = poll(IDLE_SECONDS_MAX)
            if not table.num_rows:
                break
            seen += table.num_rows
            lengths = pyarrow.compute.binary_length(table["value"])
            size += pyarrow.compute.sum(lengths).as_py()
        figures = section.stop()
    check(order, seen, size)
    return figures


def _all_sent(order: Order, sent: int) -> None:
    if sent < order.records:
        raise Short(f"{sent} of {order.records} records were acknowledged")


# --- the others -----------------------------------------------------------------------------------


def confluent_produce(order: Order) -> dict[str, float]:
    from confluent_kafka import Producer

    producer = Producer(
        {"bootstrap.servers": order.bootstrap, "acks": "all", "linger.ms": LINGER_MS}
    )
    producer.list_topics(order.topic, timeout=30)
    produce, topic = producer.produce, order.topic
    section = Section()
    for value in values(order):
        try:
            produce(topic, value)
        except BufferError:
            while len(producer) > 50_000:
                producer.poll(0.01)
            produce(topic, value)
    unsent = producer.flush(FLUSH_SECONDS_MAX)
    figures = section.stop()
    _all_sent(order, order.records - unsent)
    return figures


def confluent_consume(order: Order) -> dict[str, float]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": order.bootstrap,
            "group.id": "ottla-bench",
            "enable.auto.commit": False,
            **CONFLUENT_QUEUE,
        }
    )
    section = Section()
    consumer.assign([TopicPartition(order.topic, 0, 0)])
    seen = size = 0
    while seen < order.records:
        messages = consumer.consume(min(POLL_RECORDS, order.records - seen), IDLE_SECONDS_MAX)
        if not messages:
            break
        seen += len(messages)
        size += sum([len(message.value() or b"") for message in messages])
    figures = section.stop()
    consumer.close()
    check(order, seen, size)
    return figures


def kafka_python_produce(order: Order) -> dict[str, float]:
    from kafka import KafkaProducer  # type: ignore[import-untyped]

    producer = KafkaProducer(
        bootstrap_servers=order.bootstrap,
        acks="all",
        linger_ms=LINGER_MS,
        batch_size=BATCH_BYTES,
    )
    producer.partitions_for(order.topic)
    section = Section()
    for value in values(order):
        last = producer.send(order.topic, value)
    producer.flush()
    figures = section.stop()
    _all_sent(order, last.get(FLUSH_SECONDS_MAX).offset + 1)
    producer.close()
    return figures


def kafka_python_consume(order: Order) -> dict[str, float]:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=order.bootstrap)
    section = Section()
    where = TopicPartition(order.topic, 0)
    consumer.assign([where])
    consumer.seek_to_beginning(where)
    seen = size = 0
    deadline = time.monotonic() + IDLE_SECONDS_MAX
    while seen < order.records and time.monotonic() < deadline:
        for records in consumer.poll(1000, max_records=POLL_RECORDS).values():
            deadline = time.monotonic() + IDLE_SECONDS_MAX
            seen += len(records)
            size += sum([len(record.value) for record in records])
    figures = section.stop()
    consumer.close()
    check(order, seen, size)
    return figures


async def aiokafka_produce(order: Order) -> dict[str, float]:
    from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]

    producer = AIOKafkaProducer(
        bootstrap_servers=order.bootstrap,
        acks="all",
        linger_ms=LINGER_MS,
        max_batch_size=BATCH_BYTES,
    )
    await producer.start()
    await producer.partitions_for(order.topic)
    section = Section()
    for value in values(order):
        last = await producer.send(order.topic, value)
    await producer.flush()
    figures = section.stop()
    _all_sent(order, (await last).offset + 1)
    await producer.stop()
    return figures


async def aiokafka_consume(order: Order) -> dict[str, float]:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(bootstrap_servers=order.bootstrap, enable_auto_commit=False)
    await consumer.start()
    section = Section()
    where = TopicPartition(order.topic, 0)
    consumer.assign([where])
    await consumer.seek_to_beginning(where)
    seen = size = 0
    deadline = time.monotonic() + IDLE_SECONDS_MAX
    while seen < order.records and time.monotonic() < deadline:
        found = await consumer.getmany(timeout_ms=1000, max_records=POLL_RECORDS)
        for records in found.values():
            deadline = time.monotonic() + IDLE_SECONDS_MAX
            seen += len(records)
            size += sum([len(record.value) for record in records])
    figures = section.stop()
    await consumer.stop()
    check(order, seen, size)
    return figures


Work = Callable[[Order], Any]
WORK: dict[str, tuple[Work, Work]] = {
    "ottla": (ottla_produce, ottla_consume),
    "ottla for": (ottla_produce, ottla_iterate),
    "ottla.aio": (ottla_aio_produce, ottla_aio_consume),
    "ottla plain": (ottla_produce, ottla_consume),
    "ottla.aio plain": (ottla_aio_produce, ottla_aio_consume),
    "ottla Arrow": (arrow_produce, arrow_consume),
    "confluent-kafka": (confluent_produce, confluent_consume),
    "aiokafka": (aiokafka_produce, aiokafka_consume),
    "kafka-python": (kafka_python_produce, kafka_python_consume),
}
"""How each client produces and consumes."""


def is_the_same(client: str, direction: str) -> bool:
    """Whether an earlier line measures the same: there is one way only to produce row by row."""
    return client == "ottla for" and direction == "produce"


def _run(work: Work, order: Order) -> dict[str, float]:
    found = work(order)
    figures: dict[str, float] = asyncio.run(found) if asyncio.iscoroutine(found) else found
    return figures


def _peak_mib() -> float:
    """The most memory this process had in RAM. What getrusage tells counts its parent's too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def main(arguments: list[str]) -> int:
    """Do what the order says and print what it cost."""
    order = Order(**json.loads(arguments[0]))
    if order.client.endswith("plain"):
        without_accelerator()
    work = WORK[order.client][("produce", "consume").index(order.direction)]
    _run(work, replace(order, records=WARM_UP_RECORDS))
    figures = _run(work, order)
    figures["peak_mib"] = _peak_mib()
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
