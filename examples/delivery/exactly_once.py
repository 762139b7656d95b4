"""Exactly once: the work and the offset are committed together, in one transaction.

    python examples/delivery/exactly_once.py [HOST:PORT]

A crash anywhere leaves both or neither. The successor has the same transactional id: taking it
over aborts what the dead worker left open, and readers of committed records never see that.
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
    consumer = group_consumer(bootstrap, "exactly-once")
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "cashier"})
    producer.init_transactions()
    for payment in payments(consumer):
        producer.begin_transaction()
        producer.produce("receipts", b"receipt for " + payment.value())
        producer.flush()  # it is in the log, and not yet committed
        crash_point(payment, crashes)
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
        )
        producer.commit_transaction()
    consumer.close()


if __name__ == "__main__":
    with broker() as bootstrap:
        send_payments(bootstrap)
        run_twice(worker, bootstrap)
        report("exactly once", receipts(bootstrap))
