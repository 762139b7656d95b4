"""A ZooKeeper that comes back empty: brokers delete nothing, do not join what is not theirs, and
their topics can be rebuilt from the logs of all of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from ottla import Admin, Consumer, Producer
from ottla.clients.topics import NewTopic
from ottla.model.ids import TopicPartition
from ottla.testing import Cluster
from ottla.testing.child import BrokerFailedToStart
from ottla.testing.zookeeper import why_unavailable
from support.eventually import eventually

pytestmark = pytest.mark.skipif(why_unavailable() is not None, reason=str(why_unavailable()))

RECORDS = 60
COMMITS = 1_000
"""More than such a cluster makes."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, can_partition=False) as started:
        yield started


def write(cluster: Cluster, start: int = 0) -> None:
    with Producer(cluster.bootstrap_servers, acks="all") as producer:
        for number in range(start, start + RECORDS):
            producer.send("orders", str(number).encode(), partition=number % 2)


def read_all(cluster: Cluster, count: int) -> set[bytes]:
    with Consumer(
        bootstrap_servers=cluster.bootstrap_servers, config={"auto.offset.reset": "earliest"}
    ) as consumer:
        consumer.assign([TopicPartition("orders", partition) for partition in range(2)])
        seen: set[bytes] = set()
        while len(seen) < count and (records := consumer.poll(timeout_s=30)):
            seen |= {record.value for record in records}
    return seen


def empty_zookeeper(cluster: Cluster) -> None:
    cluster.zookeeper.kill()
    for server in cluster.zookeeper.servers:
        for found in server.log_path.parent.glob("version-2"):
            shutil.rmtree(found)
    cluster.zookeeper.start()
    # A server refuses clients that have seen later commits than it has: until there are as many.
    client = KazooClient(cluster.zookeeper.hosts)
    client.start()
    for number in range(COMMITS):
        client.create(f"/n{number}")
    client.stop()
    client.close()


def adopt(cluster: Cluster, broker: int) -> subprocess.CompletedProcess[str]:
    address = f"{cluster.zookeeper.address}/ottla"
    data = str(cluster.brokers[broker].data)
    command = [sys.executable, "-m", "ottla", "log", "adopt", data, "--metadata", address]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def logs_of(cluster: Cluster, broker: int) -> list[Path]:
    return sorted(cluster.brokers[broker].data.glob("orders-[01]"))


@pytest.mark.slow
def test_an_emptied_zookeeper_costs_no_record(cluster: Cluster) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics(NewTopic("orders", 2))
    cluster.wait_until_in_sync()
    write(cluster)
    # One log is shorter than the others, and it is the first to be adopted.
    cluster.kill(2)
    write(cluster, start=RECORDS)

    empty_zookeeper(cluster)
    for broker in (0, 1):
        eventually(
            lambda b=broker: "no cluster in it" in cluster.brokers[b].log_path.read_text(),
            "the broker's complaint",
            timeout_seconds=60,
        )
        assert len(logs_of(cluster, broker)) == 2
    with pytest.raises(BrokerFailedToStart, match="ottla log adopt"):
        cluster.start_brokers([2])
    for broker in (0, 1):
        cluster.kill(broker)

    for broker in (2, 0, 1):
        adopted = adopt(cluster, broker)
        assert adopted.returncode == 0, adopted.stderr
    cluster.start_brokers([0, 1, 2])
    assert read_all(cluster, 2 * RECORDS) == {b"%d" % number for number in range(2 * RECORDS)}
    cluster.wait_until_in_sync()
    again = adopt(cluster, 0)
    assert again.returncode == 2
    assert "stop that broker" in again.stderr
    for broker in range(3):
        assert len(logs_of(cluster, broker)) == 2
        assert not list(cluster.brokers[broker].data.glob("*-delete"))


@pytest.mark.slow
def test_a_leader_whose_folder_is_gone_fetches_it_from_the_others(cluster: Cluster) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics(NewTopic("orders", 2))
    cluster.wait_until_in_sync()
    write(cluster)
    leader = cluster.leader_of("orders")
    for broker in cluster.brokers:  # nobody has time to elect another
        broker.kill()
    shutil.rmtree(cluster.brokers[leader].data / "orders-0")
    cluster.start_brokers([leader])
    others = [number for number in range(3) if number != leader]
    cluster.start_brokers(others)
    assert read_all(cluster, RECORDS) == {b"%d" % number for number in range(RECORDS)}
    cluster.wait_until_in_sync()
