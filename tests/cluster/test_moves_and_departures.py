"""Partitions move, brokers stop and controllers die while records are written: none is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ottla import Admin, Consumer, Producer
from ottla.clients.address import parse_addresses
from ottla.clients.client import Client
from ottla.clients.metadata import PartitionInfo
from ottla.clients.topics import NewTopic
from ottla.errors import ErrorCode
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.testing import Cluster
from ottla.testing.zookeeper import why_unavailable
from support.eventually import eventually

pytestmark = pytest.mark.skipif(why_unavailable() is not None, reason=str(why_unavailable()))

PARTITIONS = 4
PAUSE_SECONDS = 0.005


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    pytest.importorskip("kazoo", reason="kazoo is absent: pip install 'ottla[cluster]'")
    with Cluster(brokers=3) as started:
        yield started


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[Admin]:
    with Admin(cluster.bootstrap_servers) as connected:
        yield connected


def a_topic(admin: Admin, name: str, *replicas: int) -> list[TopicPartition]:
    assignments = dict.fromkeys(range(PARTITIONS), replicas)
    (created,) = admin.create_topics(NewTopic(name, assignments=assignments))
    assert created.error is None
    return [TopicPartition(name, index) for index in range(PARTITIONS)]


def partitions(admin: Admin, topic: str) -> tuple[PartitionInfo, ...]:
    return admin.describe_topic(topic).partitions


def handed_over(admin: Admin, topic: str, broker: int) -> tuple[PartitionInfo, ...]:
    """All partitions of a topic; none where one is still said to count on the broker."""
    found = partitions(admin, topic)
    return () if any(broker in (each.leader, *each.in_sync) for each in found) else found


class Load:
    """Records written one after another until it is told to end; each is acknowledged."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._servers = cluster.bootstrap_servers
        self._topic = topic
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.acknowledged: list[bytes] = []
        self.failures: list[Exception] = []

    def _write(self) -> None:
        with Producer(self._servers, acks="all") as producer:
            while not self._ends.wait(PAUSE_SECONDS):
                value = str(len(self.acknowledged)).encode()
                try:
                    producer.send(self._topic, value, key=value).result(60)
                except Exception as error:
                    self.failures.append(error)
                    return
                self.acknowledged.append(value)

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            eventually(lambda: len(self.acknowledged) > 20, "writing")
            yield
            count = len(self.acknowledged)
            eventually(lambda: len(self.acknowledged) > count + 20, "writing on")
        finally:
            self._ends.set()
            self._thread.join(90)
        assert not self.failures

    def check(self) -> None:
        """Everything acknowledged is there, once."""
        read: list[bytes] = []
        config = {"auto.offset.reset": "earliest"}
        with Consumer(bootstrap_servers=self._servers, config=config) as consumer:
            consumer.assign([TopicPartition(self._topic, index) for index in range(PARTITIONS)])
            while len(read) < len(self.acknowledged):
                records = consumer.poll(timeout_s=20)
                assert records, f"{len(self.acknowledged) - len(read)} records are missing"
                read += [record.value for record in records]
        assert sorted(read) == sorted(self.acknowledged)


def test_partitions_move_under_load_and_leave_nothing_behind(
    cluster: Cluster, admin: Admin
) -> None:
    keys = a_topic(admin, "moved", 0, 1)
    load = Load(cluster, "moved")
    with load.running():
        assert admin.reassign_partitions({key: [2, 1] for key in keys}) == {}
        eventually(
            lambda: all(each.replicas == (2, 1) for each in partitions(admin, "moved")),
            "the move",
        )
        # Another broker may know of the end before the controller has heard that it was written.
        eventually(lambda: admin.list_reassignments() == [], "the end of the move")
    assert {each.leader for each in partitions(admin, "moved")} <= {1, 2}
    load.check()
    eventually(
        lambda: not [path for path in cluster.brokers[0].data.glob("moved-*") if path.suffix == ""],
        "the removal of the logs that broker 0 held",
    )


def test_a_move_outlives_its_controller(cluster: Cluster, admin: Admin) -> None:
    controller = cluster.controller()
    first, second = sorted({0, 1, 2} - {controller})
    keys = a_topic(admin, "orphaned", first)
    load = Load(cluster, "orphaned")
    with load.running():
        cluster.pause(second)  # The move cannot end before its controller does.
        assert admin.reassign_partitions({key: [second] for key in keys}) == {}
        assert len(admin.list_reassignments()) == PARTITIONS
        cluster.kill(controller)
        cluster.resume(second)
        eventually(
            lambda: all(each.replicas == (second,) for each in partitions(admin, "orphaned")),
            "the move",
            timeout_seconds=40,
        )
    cluster.start_brokers([controller])
    cluster.wait_until_in_sync()
    load.check()


def test_a_broker_that_stops_hands_over_first_and_leads_again_on_request(
    cluster: Cluster, admin: Admin
) -> None:
    keys = a_topic(admin, "kept", 0, 1, 2)
    load = Load(cluster, "kept")
    with load.running():
        epochs = {each.leader_epoch for each in partitions(admin, "kept")}
        assert cluster.stop(0) == 0
        after = eventually(lambda: handed_over(admin, "kept", 0), "word of it at whom we ask")
        assert all(each.leader in (1, 2) for each in after)
        assert {each.leader_epoch for each in after} == {epoch + 1 for epoch in epochs}, (
            "one election each: nobody had to notice that it was gone"
        )
        cluster.start_brokers([0])
        cluster.wait_until_in_sync()
        assert admin.elect_leaders(keys) == {}
        eventually(
            lambda: all(each.leader == 0 for each in partitions(admin, "kept")), "the election"
        )
    load.check()


def test_who_asks_the_wrong_broker_is_told_the_right_one(cluster: Cluster, admin: Admin) -> None:
    a_topic(admin, "hinted", 2, 1)
    cluster.wait_until_in_sync()  # broker 0 knows the topic too
    batch = memoryview(bytearray(build_batch([Record(0, 0, None, b"v")])))

    async def ask() -> tuple[ProduceResponse, FetchResponse]:
        async with Client(parse_addresses([cluster.bootstrap_servers])) as client:
            topic = await client.topic("hinted")
            data = TopicProduceData("hinted", topic.id, [PartitionProduceData(0, batch)])
            produced = await client.call(
                ProduceRequest(None, -1, 1000, [data]), ProduceResponse, to=BrokerId(0)
            )
            wanted = FetchTopic("hinted", topic.id, [FetchPartition(0, partition_max_bytes=1)])
            request = FetchRequest(max_wait_ms=1, topics=[wanted])
            return produced, await client.call(request, FetchResponse, to=BrokerId(0))

    produced, fetched = asyncio.run(ask())
    written = produced.responses[0].partition_responses[0]
    assert written.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert written.current_leader is not None
    assert written.current_leader.leader_id == 2
    assert [each.node_id for each in produced.node_endpoints] == [2]
    read = fetched.responses[0].partitions[0]
    assert read.current_leader is not None
    assert read.current_leader.leader_id == 2
    assert [each.node_id for each in fetched.node_endpoints] == [2]
