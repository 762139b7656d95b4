"""At least once: the work is done first, then the offset is committed.

    python examples/delivery/at_least_once.py [HOST:PORT]

A crash between the two repeats the payment: it was done, and nobody knows. Right where the work
can be done twice without harm, such as setting a value to what it should be.
"""

from __future__ import annotations

from confluent_kafka import Producer
from payments import (
    broker,
    crash_point,
    group_consumer,
    payments,
    receipts,
    report,
    run_twice,
    send_payments,
)


def worker(bootstrap: str, crashes: bool) -> None:
    consumer = group_consumer(bootstrap, "at-least-once")
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for payment in payments(consumer):
        producer.produce("receipts", b"receipt for " + payment.value())
        producer.flush()
        crash_point(payment, crashes)
        consumer.commit(payment, asynchronous=False)  # only now it counts as done
    consumer.close()


if __name__ == "__main__":
    with broker() as bootstrap:
        send_payments(bootstrap)
        run_twice(worker, bootstrap)
        report("at least once", receipts(bootstrap))
