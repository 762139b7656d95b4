"""A local cluster as tests use it: it starts, can be hurt, and leaves nothing behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import pytest

from ottla import Admin, Consumer, Producer
from ottla.clients.configs import Resource, ResourceKind
from ottla.clients.topics import NewTopic
from ottla.model.ids import TopicPartition
from ottla.testing import Cluster
from ottla.testing.cluster import Shape
from ottla.testing.zookeeper import why_unavailable
from support.eventually import eventually

pytestmark = pytest.mark.skipif(why_unavailable() is not None, reason=str(why_unavailable()))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    pytest.importorskip("kazoo", reason="kazoo is absent: pip install 'ottla[cluster]'")
    with Cluster(brokers=3) as started:
        yield started


def test_records_written_to_three_brokers_are_read_back(cluster: Cluster) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        (created,) = admin.create_topics(NewTopic("numbers", 6))
    assert created.error is None
    assert created.replication_factor == 3
    cluster.wait_until_in_sync()
    assert {cluster.leader_of("numbers", partition) for partition in range(6)} == {0, 1, 2}
    with Producer(cluster.bootstrap_servers) as producer:
        for number in range(100):
            producer.send("numbers", str(number).encode(), key=str(number).encode())
    with Consumer(
        bootstrap_servers=cluster.bootstrap_servers, config={"auto.offset.reset": "earliest"}
    ) as consumer:
        consumer.assign([TopicPartition("numbers", partition) for partition in range(6)])
        seen: set[bytes] = set()
        while len(seen) < 100 and (records := consumer.poll(timeout_s=20)):
            seen |= {record.value for record in records}
    assert seen == {str(number).encode() for number in range(100)}


@pytest.mark.parametrize(
    ("kind", "setting", "value"),
    [
        (ResourceKind.BROKER, "log.retention.ms", "86400000"),
        (ResourceKind.LOGGER, "ottla.requests", "ERROR"),
    ],
)
def test_every_broker_can_be_set_on_its_own(
    cluster: Cluster, kind: ResourceKind, setting: str, value: str
) -> None:
    with Admin(cluster.bootstrap_servers) as admin:

        def values() -> list[str | None]:
            everywhere = (
                admin.describe_configs(Resource(kind, str(n)), [setting]) for n in range(3)
            )
            return [entry.value for entries in everywhere for entry in entries]

        def has(expected: list[str | None]) -> bool:
            return values() == expected

        unset = values()
        for number in range(3):
            resource = Resource(kind, str(number))
            admin.alter_configs(resource, {setting: value})
            alone = [*unset[:number], value, *unset[number + 1 :]]
            eventually(partial(has, alone), f"the setting of broker {number}")
            admin.alter_configs(resource, unset=[setting])
            eventually(partial(has, unset), f"what broker {number} had before")


def test_a_broker_can_be_stopped_paused_killed_and_comes_back_under_its_address(
    cluster: Cluster,
) -> None:
    controller = cluster.controller()
    broker = cluster.brokers[controller]
    address = broker.bootstrap_servers
    assert cluster.stop(controller) == 0
    assert not broker.is_running
    cluster.restart(controller)
    assert broker.bootstrap_servers == address
    cluster.pause(controller)
    cluster.resume(controller)
    cluster.kill(controller)
    cluster.start_brokers([controller])
    cluster.wait_until_in_sync()


def test_nothing_is_left_of_a_cluster_that_has_ended() -> None:
    with Cluster(brokers=1) as cluster:
        pids = [cluster.brokers[0].pid, cluster.zookeeper.servers[0].pid]
        data = cluster.data
        cluster.pause(0)
    assert not data.exists()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_after_a_failure_the_logs_are_shown_and_kept(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = Cluster(brokers=1)
    with suppress(ZeroDivisionError), cluster:
        pids = [cluster.brokers[0].pid, cluster.zookeeper.servers[0].pid]
        _ = 1 / 0
    assert f"broker 0: {cluster.brokers[0].log_path}" in capsys.readouterr().err
    assert cluster.brokers[0].log_path.exists()
    cluster.close()
    assert not cluster.data.exists()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_cluster_without_a_network_of_its_own_says_that_it_cannot_be_cut() -> None:
    cluster = Cluster.of(Shape(can_partition=False))
    try:
        with pytest.raises(RuntimeError, match="cannot be disturbed"):
            cluster.partition([[0], [1]])
    finally:
        cluster.close()


@pytest.mark.parametrize(("brokers", "replicas", "in_sync"), [(1, 1, 1), (2, 2, 2), (5, 3, 2)])
def test_settings_follow_the_number_of_brokers(brokers: int, replicas: int, in_sync: int) -> None:
    settings = Shape(brokers=brokers, settings={"num.partitions": "7"}).broker_settings()
    assert settings["default.replication.factor"] == str(replicas)
    assert settings["min.insync.replicas"] == str(in_sync)
    assert settings["num.partitions"] == "7"


def test_a_producer_that_closes_while_its_leader_dies_finds_the_next_one(cluster: Cluster) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics(NewTopic("closing", 1))
    cluster.wait_until_in_sync()
    leader = cluster.leader_of("closing")
    producer = Producer(cluster.bootstrap_servers, acks="all", delivery_timeout_ms=60_000)
    producer.send("closing", b"first").result(30)
    cluster.kill(leader)
    deliveries = [producer.send("closing", b"%d" % number) for number in range(10)]
    producer.close()
    assert [delivery.result(0).offset for delivery in deliveries] == list(range(1, 11))
    cluster.start_brokers([leader])
