"""What tests of coordinators on several brokers ask: raw questions to one broker, and checks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import ottla
from ottla.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.testing import Cluster
from support.eventually import eventually
from transactions.raw_producer import GROUP, TRANSACTION, MessageConnection

__all__ = ["GROUP", "TRANSACTION"]

FIND_COORDINATOR_VERSION = 4
PATIENCE_SECONDS = 60.0
"""Enough for a session to end and a leader to follow, on a machine that is busy."""


def named_by(cluster: Cluster, broker: int, key_type: int, key: str) -> int | None:
    """Which broker this one says coordinates a key; None where it knows of none."""
    connection = MessageConnection(cluster.brokers[broker].bootstrap_servers)
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    try:
        answer = connection.exchange(request, FIND_COORDINATOR_VERSION, FindCoordinatorResponse)
    finally:
        connection.close()
    (found,) = answer.coordinators
    return found.node_id if found.error_code == ErrorCode.NONE else None


def coordinator_of(cluster: Cluster, key_type: int, key: str) -> int:
    """The broker that all running brokers take for the coordinator of a key."""
    named: set[int | None] = set()

    def is_agreed() -> bool:
        named.clear()
        for number, broker in enumerate(cluster.brokers):
            if broker.is_running:
                named.add(named_by(cluster, number, key_type, key))
        return len(named) == 1 and None not in named

    eventually(is_agreed, f"a coordinator of {key}", timeout_seconds=PATIENCE_SECONDS)
    (agreed,) = named
    assert agreed is not None
    return agreed


def wait_stable(cluster: Cluster, topic: str, partitions: Iterable[int]) -> None:
    """Returns when no transaction is open in the partitions: nothing holds readers back."""
    places = [TopicPartition(topic, each) for each in partitions]
    eventually(
        lambda: _ends(cluster, "read_committed", places) == _ends(cluster, "", places),
        f"the end of all transactions in {topic}",
        timeout_seconds=PATIENCE_SECONDS,
    )


def _ends(
    cluster: Cluster, isolation: str, places: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    with ottla.Consumer(
        bootstrap_servers=cluster.bootstrap_servers,
        isolation_level=isolation or "read_uncommitted",
    ) as consumer:
        return consumer.end_offsets(*places)


def committed_values(cluster: Cluster, topic: str, partitions: Iterable[int]) -> list[list[bytes]]:
    """What a reader of committed records finds in each partition, from start to end."""
    found = []
    for partition in partitions:
        place = TopicPartition(topic, partition)
        values: list[bytes] = []
        with ottla.Consumer(
            bootstrap_servers=cluster.bootstrap_servers,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        ) as consumer:
            consumer.assign([place])
            end = consumer.end_offsets(place)[place]
            deadline = time.monotonic() + PATIENCE_SECONDS
            while consumer.position(place) < end:
                values += [bytes(record.value or b"") for record in consumer.poll(0.5)]
                assert time.monotonic() < deadline, f"{place} is not read to {end}"
        found.append(values)
    return found
