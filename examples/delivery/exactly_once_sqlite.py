"""Exactly once into a database: the offset is stored with the output, in one transaction of SQLite.

    python examples/delivery/exactly_once_sqlite.py [HOST:PORT]

No group, no transaction of the broker: where the output is, there the offset is too. A crash
anywhere leaves both or neither, and the successor asks the database where to go on.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from payments import broker, crash_point, payments, report, run_twice, send_payments

DATABASE = "RECEIPTS_DATABASE"
"""The environment variable that tells workers where the database is."""


def worker(bootstrap: str, crashes: bool) -> None:
    database = sqlite3.connect(os.environ[DATABASE])
    database.execute("CREATE TABLE IF NOT EXISTS receipts (receipt TEXT)")
    database.execute("CREATE TABLE IF NOT EXISTS progress (next_offset INTEGER)")
    (next_offset,) = database.execute("SELECT max(next_offset) FROM progress").fetchone()
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition("payments", 0, next_offset or 0)])
    for payment in payments(consumer):
        receipt = f"receipt for {payment.value().decode()}"
        with database:  # commits at its end, or not at all
            database.execute("INSERT INTO receipts VALUES (?)", (receipt,))
            crash_point(payment, crashes)
            database.execute("INSERT INTO progress VALUES (?)", (payment.offset() + 1,))
    consumer.close()


def stored_receipts() -> list[str]:
    database = sqlite3.connect(os.environ[DATABASE])
    return [receipt for (receipt,) in database.execute("SELECT receipt FROM receipts")]


if __name__ == "__main__":
    with broker() as bootstrap, tempfile.TemporaryDirectory() as folder:
        os.environ[DATABASE] = str(Path(folder) / "receipts.db")
        send_payments(bootstrap)
        run_twice(worker, bootstrap)
        report("exactly once, in SQLite", stored_receipts())
