"""Topics for the connector's tests: made, filled and read whole, without Spark."""

from collections.abc import Iterable, Mapping

import ottla
from ottla.clients.arrow.partition_reader import PartitionReader
from ottla.model.ids import TopicPartition

Rows = dict[int, list[tuple[bytes | None, bytes | None]]]
"""By partition the keys and values, in order."""


def make_topic(bootstrap: str, name: str, partitions: int = 2) -> str:
    with ottla.Admin(bootstrap) as admin:
        admin.create_topics(ottla.NewTopic(name, partitions))
    return name


def fill(bootstrap: str, topic: str, values: Iterable[bytes], *, partition: int = 0) -> None:
    with ottla.Producer(bootstrap) as producer:
        for value in values:
            producer.send(topic, value, key=value, partition=partition)


def ends(bootstrap: str, topic: str) -> dict[int, int]:
    """Where the committed part of each partition ends."""
    with ottla.Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        with ottla.Admin(bootstrap) as admin:
            count = len(admin.describe_topic(topic).partitions)
        partitions = [TopicPartition(topic, number) for number in range(count)]
        found = consumer.end_offsets(*partitions)
    return {where.partition: found[where] for where in partitions}


def rows_of(bootstrap: str, topic: str) -> Rows:
    """Everything committed, read without Spark."""
    found: Rows = {}
    for partition, end in ends(bootstrap, topic).items():
        where = TopicPartition(topic, partition)
        with PartitionReader(
            where,
            0,
            end,
            columns=("key", "value"),
            read_committed=True,
            bootstrap_servers=bootstrap,
        ) as reader:
            found[partition] = [
                (row["key"], row["value"]) for batch in reader for row in batch.to_pylist()
            ]
    return found


def values_of(bootstrap: str, topic: str) -> list[bytes | None]:
    """All committed values, in order within each partition."""
    return [value for rows in rows_of(bootstrap, topic).values() for _, value in rows]


def options(bootstrap: str, more: Mapping[str, str] | None = None, **named: str) -> dict[str, str]:
    """Options of the format, with the brokers."""
    return {"kafka.bootstrap.servers": bootstrap, **named, **(more or {})}
