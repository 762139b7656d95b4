"""Commit by hand, and hear when partitions come and go.

python examples/clients/rebalance_listener.py [HOST:PORT]
"""

import sys
from collections.abc import Collection

import ottla

bootstrap = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"


class Listener:
    """Called in the thread that polls, so that it may use the consumer."""

    def __init__(self, consumer: ottla.Consumer) -> None:
        self._consumer = consumer

    def on_assigned(self, partitions: Collection[ottla.TopicPartition]) -> None:
        print("assigned", *partitions)

    def on_revoked(self, partitions: Collection[ottla.TopicPartition]) -> None:
        self._consumer.commit()
        print("revoked", *partitions)

    def on_lost(self, partitions: Collection[ottla.TopicPartition]) -> None:
        print("lost", *partitions)


with ottla.Producer(bootstrap) as producer:
    producer.send("listened", b"hello").result()

with ottla.Consumer(
    bootstrap_servers=bootstrap,
    group_id="listeners",
    auto_offset_reset="earliest",
    enable_auto_commit=False,
    partition_assignment_strategy="cooperative-sticky",
) as consumer:
    consumer.subscribe(["listened"], Listener(consumer))
    while not consumer.poll(5.0):
        pass
