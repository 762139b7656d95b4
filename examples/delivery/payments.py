"""What the four examples share: payments go in, receipts come out, and a worker that crashes.

Each example is a worker that takes payments from one topic and writes a receipt for each. It is
run twice: the first one dies in the middle of its work, the second goes on where that left off.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, Message, Producer, TopicPartition

COUNT = 8
CRASH_AT = 4
"""The payment at which the first worker dies."""
CRASHED = 1

Worker = Callable[[str, bool], None]


@contextmanager
def broker() -> Iterator[str]:
    """The address given on the command line, or a broker for the length of the example."""
    if len(sys.argv) > 1:
        yield sys.argv[1]
        return
    from ottla.testing import Broker

    with Broker() as started:
        yield started.bootstrap_servers


def send_payments(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(COUNT):
        producer.produce("payments", b"payment %d" % number)
    assert producer.flush(30) == 0, "the payments were not sent"


def run_twice(worker: Worker, bootstrap: str) -> None:
    """A worker that crashes at CRASH_AT, and its successor."""
    for crashes in (True, False):
        process = multiprocessing.get_context("spawn").Process(
            target=worker, args=(bootstrap, crashes)
        )
        process.start()
        process.join(60)
        assert process.exitcode == (CRASHED if crashes else 0), f"ended with {process.exitcode}"


def crash_point(message: Message, crashes: bool) -> None:
    """Die here, as a power cut would have it: nothing is closed, flushed or told to anyone."""
    if crashes and message.offset() == CRASH_AT:
        os._exit(CRASHED)


def group_consumer(bootstrap: str, group: str) -> Consumer:
    """A member of a group that commits offsets only when told to."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.instance.id": "worker",  # the successor takes its place without a wait
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe(["payments"])
    return consumer


def payments(consumer: Consumer) -> Iterator[Message]:
    """Payments one by one, until there are no more."""
    while True:
        message = consumer.poll(30)
        assert message is not None, "the broker is silent"
        if message.error():  # the end of the partition
            return
        yield message


def receipts(bootstrap: str) -> list[str]:
    """What a reader of committed records finds."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition("receipts", 0, 0)])
    found = [message.value().decode() for message in payments(consumer)]
    consumer.close()
    return found


def report(guarantee: str, found: list[str]) -> None:
    """Say what became of the payments."""
    expected = [f"receipt for payment {number}" for number in range(COUNT)]
    lost = [one for one in expected if one not in found]
    doubled = sorted({one for one in found if found.count(one) > 1})
    print(f"{guarantee}: {COUNT} payments, {len(found)} receipts")
    print(f"  lost: {', '.join(lost) or 'none'}")
    print(f"  twice: {', '.join(doubled) or 'none'}")
