"""At most once: the offset is committed first, then the work is done.

    python examples/delivery/at_most_once.py [HOST:PORT]

A crash between the two loses the payment: it counts as done, and nobody did it. Right where a
lost record is better than a doubled one, such as a reading of a sensor.
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
    consumer = group_consumer(bootstrap, "at-most-once")
    producer = Producer({"bootstrap.servers": bootstrap})
    for payment in payments(consumer):
        consumer.commit(payment, asynchronous=False)  # from now on it counts as done
        crash_point(payment, crashes)
        producer.produce("receipts", b"receipt for " + payment.value())
        producer.flush()
    consumer.close()


if __name__ == "__main__":
    with broker() as bootstrap:
        send_payments(bootstrap)
        run_twice(worker, bootstrap)
        report("at most once", receipts(bootstrap))
