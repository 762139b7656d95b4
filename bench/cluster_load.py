"""What is asked of a cluster on plain sockets: its metadata, and one write to every partition."""

from __future__ import annotations

import struct
import time
from collections import defaultdict
from dataclasses import dataclass

import wire
from cluster_brokers import RunningCluster, bootstrap_of
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

PARTITIONS_PER_REQUEST = 500
COMMIT_MS_MAX = 1_000
WRITES_SECONDS_MAX = 120.0
PAUSE_SECONDS = 0.02
NO_LEADER = -1
NOT_CONTROLLER = 41
RECORD = wire.record_batch(b"x" * 100, 1)


class TookTooLong(Exception):
    """Not every partition took a write in time."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the partitions of a topic are, as one broker tells it."""

    leaders: dict[int, int]
    in_sync: dict[int, int]
    """How many replicas each has in sync."""


def create_topic(cluster: RunningCluster, partitions: int) -> str:
    """A topic with three replicas of everything."""
    topic = f"bench-{time.time_ns()}"
    admin = AdminClient({"bootstrap.servers": bootstrap_of(cluster)})
    wish = NewTopic(topic, partitions, 3, config={"min.insync.replicas": "2"})
    admin.create_topics([wish], operation_timeout=60, request_timeout=120)[topic].result(120)
    return topic


def layout(connection: wire.Connection, topic: str) -> Layout:
    """Metadata of a topic, from the broker at the other end."""
    answer = connection.request(wire.METADATA, struct.pack(">i", 1) + wire.string(topic))
    for _ in range(answer.number("i")):
        answer.take("i")
        answer.string()
        answer.take("i")
        answer.string()
    answer.take("iih")
    answer.string()
    answer.take("b")
    leaders: dict[int, int] = {}
    in_sync: dict[int, int] = {}
    for _ in range(answer.number("i")):
        _, index, leader = answer.take("hii")
        answer.skip(answer.number("i") * 4)
        members = answer.number("i")
        answer.skip(members * 4)
        leaders[index], in_sync[index] = leader, members
    return Layout(leaders, in_sync)


class Writes:
    """Writes one record to each partition of a topic until each has acknowledged one."""

    def __init__(self, cluster: RunningCluster, topic: str, partitions: int, asked: int) -> None:
        self._cluster = cluster
        self._topic = topic
        self._partitions = partitions
        self._asked = asked
        """The number of the broker that is asked for the metadata."""
        self._connections: dict[int, wire.Connection] = {}

    def seconds_until_all(self, began: float) -> float:
        """Seconds from `began` (of perf_counter) to the last partition's acknowledgement."""
        missing = set(range(self._partitions))
        while missing:
            if time.perf_counter() - began > WRITES_SECONDS_MAX:
                raise TookTooLong(f"{len(missing)} partitions take no writes")
            try:
                self._round(missing)
            except (OSError, wire.BrokerAnswer):
                self.close()
            if missing:
                time.sleep(PAUSE_SECONDS)
        taken = time.perf_counter() - began
        self.close()
        return taken

    def close(self) -> None:
        for connection in self._connections.values():
            connection.socket.close()
        self._connections.clear()

    def _round(self, missing: set[int]) -> None:
        leaders = layout(self._to(self._asked), self._topic).leaders
        by_leader: dict[int, list[int]] = defaultdict(list)
        for partition in sorted(missing):
            leader = leaders.get(partition, NO_LEADER)
            if leader != NO_LEADER:
                by_leader[leader].append(partition)
        for leader, partitions in by_leader.items():
            try:
                connection = self._to(leader)
            except OSError:
                continue  # it is the one that died
            for start in range(0, len(partitions), PARTITIONS_PER_REQUEST):
                body = self._body(partitions[start : start + PARTITIONS_PER_REQUEST])
                missing -= _acknowledged(connection.request(wire.PRODUCE, body))

    def _to(self, number: int) -> wire.Connection:
        known = self._connections.get(number)
        if known is None:
            known = wire.Connection(self._cluster.addresses[number], timeout_s=20)
            self._connections[number] = known
        return known

    def _body(self, partitions: list[int]) -> bytes:
        head = wire.string(None) + struct.pack(">hii", -1, COMMIT_MS_MAX, 1)
        head += wire.string(self._topic) + struct.pack(">i", len(partitions))
        size = len(RECORD.data)
        return head + b"".join(struct.pack(">ii", one, size) + RECORD.data for one in partitions)


def _acknowledged(answer: wire.Reader) -> set[int]:
    answer.take("i")
    answer.string()
    found = [answer.take("ihqqq") for _ in range(answer.number("i"))]
    return {int(index) for index, error, *_ in found if not error}


def balance_leaders(cluster: RunningCluster, topic: str, number: int) -> None:
    """Let preferred leaders lead again; waits until this broker knows of leaders everywhere."""
    for address in cluster.addresses:
        with wire.Connection(address) as connection:
            answer = connection.request(wire.ELECT_LEADERS, struct.pack(">bii", 0, -1, 60_000))
        _, error = answer.take("ih")
        if error not in (0, NOT_CONTROLLER):
            raise wire.BrokerAnswer(f"ElectLeaders answered error {error}")
    deadline = time.perf_counter() + WRITES_SECONDS_MAX
    with wire.Connection(cluster.addresses[number]) as connection:
        while len(set(layout(connection, topic).leaders.values())) < len(cluster.addresses):
            if time.perf_counter() > deadline:
                raise TookTooLong("a broker that is back leads nothing")
            time.sleep(0.05)


def wait_in_sync(cluster: RunningCluster, topic: str, replicas: int, number: int = 0) -> float:
    """Wait until every partition has so many replicas in sync; the seconds it took."""
    began = time.perf_counter()
    with wire.Connection(cluster.addresses[number]) as connection:
        while True:
            counts = layout(connection, topic).in_sync.values()
            if counts and min(counts) >= replicas:
                return time.perf_counter() - began
            if time.perf_counter() - began > WRITES_SECONDS_MAX:
                late = sum(count < replicas for count in counts)
                raise TookTooLong(f"{late} partitions have too few replicas in sync")
            time.sleep(0.05)
