"""Three ZooKeeper servers: what was committed survives them; brokers agree on one controller."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator

import pytest

pytest.importorskip("kazoo", reason="kazoo is absent: pip install 'ottla[cluster]'")

from ottla.cluster import layout
from ottla.cluster.certainty import multi_for_certain
from ottla.cluster.changes import NewTopic, create_topic, delete_topic
from ottla.cluster.image import Draft, TopicImage, image_from
from ottla.cluster.metadata import ClusterMetadata
from ottla.cluster.placement import Turn
from ottla.cluster.registration import BrokerIdInUse, ControllerMoved
from ottla.cluster.session import SessionEvent
from ottla.cluster.store import (
    BadVersion,
    Create,
    Delete,
    NodeChanged,
    SetData,
    StoreError,
    StoreUncertain,
    StoreUnreachable,
)
from ottla.model.ids import BrokerId, TopicId
from ottla.settings import BrokerSettings
from ottla.testing.zookeeper import ZooKeeper, why_unavailable
from support.zookeeper_stores import a_store, events_of, is_alive, play, until


@pytest.fixture(scope="module")
def ensemble() -> Iterator[ZooKeeper]:
    if reason := why_unavailable():
        pytest.skip(reason)
    with ZooKeeper(servers=3) as servers:
        yield servers


@pytest.fixture
def branch(ensemble: ZooKeeper) -> str:
    """Every test finds all three servers running, and has a branch of its own."""
    ensemble.start()
    return f"{uuid.uuid4().hex}?session_timeout_ms=6000"


def a_broker(number: int) -> layout.BrokerNode:
    return layout.BrokerNode(
        host="h",
        port=number,
        endpoints=(f"PLAINTEXT://h:{number}",),
        timestamp="0",
        listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
    )


def a_topic(draft: Draft, name: str, partition_count: int) -> TopicImage:
    return create_topic(
        draft,
        NewTopic(name, partition_count, 1),
        topic_id=TopicId(name.encode().ljust(16, b"\0")),
        turn=Turn(),
        settings=BrokerSettings(),
    )


def test_a_read_at_one_server_sees_what_was_committed_at_another(
    ensemble: ZooKeeper, branch: str
) -> None:
    """The ensemble's leader is only written at: cluster/zookeeper.py says why."""
    leader = ensemble.leader
    followers = [server for server in ensemble.servers if server is not leader]

    async def scenario() -> None:
        first, second, third = (
            f"zookeeper://{server.host_and_port}/{branch}" for server in (*followers, leader)
        )
        async with a_store(first) as one, a_store(second) as two, a_store(third) as leading:
            pairs = ((one, two), (two, one), (leading, one), (leading, two))
            await one.multi([Create("/a")])
            for version in range(60):
                writer, reader = pairs[version % len(pairs)]
                await writer.multi([SetData("/a", str(version).encode(), version)])
                node = await reader.get("/a")
                assert node is not None
                assert node.data == str(version).encode()

    play(scenario)


def test_no_acknowledged_write_is_lost_when_the_leader_of_the_ensemble_dies(
    ensemble: ZooKeeper, branch: str
) -> None:
    async def scenario() -> None:
        async with a_store(f"{ensemble.address}/{branch}") as store:
            await store.multi([Create("/a"), Create("/session", is_ephemeral=True)])
            killing = asyncio.ensure_future(asyncio.to_thread(ensemble.leader.kill))
            version = 0
            while version < 300 or not killing.done() or not store.is_connected:
                try:
                    await multi_for_certain(store, [SetData("/a", b"%d" % version, version)])
                except StoreUnreachable:
                    continue
                version += 1
            node = await store.get("/a")
            assert node is not None
            assert (node.data, node.version) == (b"%d" % (version - 1), version)
            assert await store.get("/session") is not None

    play(scenario)


def test_without_a_quorum_a_session_is_doubted_and_with_one_it_comes_back(
    ensemble: ZooKeeper, branch: str
) -> None:
    async def scenario() -> None:
        async with a_store(f"{ensemble.address}/{branch}") as store:
            events = events_of(store)
            for server in ensemble.servers[:2]:
                await asyncio.to_thread(server.kill)
            await until(lambda: SessionEvent.DOUBTED in events, "doubt")
            assert not is_alive(store)
            with pytest.raises((StoreUnreachable, StoreUncertain)):
                await store.multi([Create("/a")])
            await asyncio.to_thread(ensemble.start)
            await until(lambda: is_alive(store), "a living session")
            assert events[0] is SessionEvent.DOUBTED
            assert events[-1] in (SessionEvent.CONFIRMED, SessionEvent.RENEWED)
            await store.multi([Create("/a")])

    play(scenario)


def test_brokers_that_start_together_agree_on_cluster_and_controller(
    ensemble: ZooKeeper, branch: str
) -> None:
    async def scenario() -> None:
        address = f"{ensemble.address}/{branch}"
        async with a_store(address) as one, a_store(address) as two, a_store(address) as three:
            stores = [one, two, three]
            brokers = await asyncio.gather(
                *(ClusterMetadata.open(store, cluster_id=str(n)) for n, store in enumerate(stores))
            )
            assert len({broker.image.cluster_id for broker in brokers}) == 1
            await asyncio.gather(
                *(each.register(BrokerId(n), a_broker(n)) for n, each in enumerate(brokers))
            )
            outcomes = await asyncio.gather(
                *(each.become_controller(BrokerId(n), 1) for n, each in enumerate(brokers)),
                return_exceptions=True,
            )
            assert sorted(map(str, map(type, outcomes))) == sorted(
                map(str, [ControllerMoved, ControllerMoved, int])
            )
            images = [await broker.reload() for broker in brokers]
            assert images[0] == images[1] == images[2]
            assert sorted(images[0].brokers) == [0, 1, 2]

    play(scenario)


def test_the_next_controller_hears_that_the_first_is_gone_and_shuts_it_out(
    ensemble: ZooKeeper, branch: str
) -> None:
    async def scenario() -> None:
        address = f"{ensemble.address}/{branch}"
        async with a_store(address) as one, a_store(address) as two:
            first = await ClusterMetadata.open(one, cluster_id="c")
            await first.register(BrokerId(1), a_broker(1))
            await first.become_controller(BrokerId(1), 1)
            second = await ClusterMetadata.open(two, cluster_id="c")
            gone: list[NodeChanged] = []
            two.watch(layout.CONTROLLER, gone.append)
            # As if its session had ended without its knowing.
            await second.store.multi([Delete(layout.CONTROLLER)])
            await until(lambda: bool(gone), "the end of the controller's node")
            assert await second.become_controller(BrokerId(2), 2) == 2
            with pytest.raises(ControllerMoved):
                await first.change(lambda draft: a_topic(draft, "a", 1))
            await second.reload()
            await second.change(lambda draft: a_topic(draft, "a", 1))
            assert sorted((await first.reload()).topics) == ["a"]
            assert first.image.controller_epoch == 2

    play(scenario)


def test_a_restarted_broker_waits_for_the_end_of_its_dead_predecessor(
    ensemble: ZooKeeper, branch: str
) -> None:
    async def scenario() -> None:
        address = f"{ensemble.address}/{branch}"
        async with a_store(address) as one, a_store(address) as two:
            dead = await ClusterMetadata.open(one, cluster_id="c")
            before = await dead.register(BrokerId(1), a_broker(1))
            fresh = await ClusterMetadata.open(two, cluster_id="c")
            with pytest.raises(BrokerIdInUse):
                await fresh.register(BrokerId(1), a_broker(1))
            waiting = asyncio.ensure_future(
                fresh.register(BrokerId(1), a_broker(1), patience_seconds=60)
            )
            await one.close()
            assert (await waiting).epoch > before.epoch

    play(scenario)


def test_ten_thousand_partitions_are_created_read_and_deleted(
    ensemble: ZooKeeper, branch: str
) -> None:
    async def scenario() -> None:
        async with a_store(f"{ensemble.address}/{branch}") as store:
            metadata = await ClusterMetadata.open(store, cluster_id="c")
            await metadata.register(BrokerId(1), a_broker(1))
            await metadata.become_controller(BrokerId(1), 1)
            await metadata.change(lambda draft: a_topic(draft, "large", 10_000))
            nodes = await store.read_all("/")
            assert image_from(nodes) == metadata.image
            assert all(each.has_leader for each in metadata.image.topics["large"].partitions)
            await metadata.change(lambda draft: delete_topic(draft, "large"))
            assert not [path for path in await store.read_all("/") if "large" in path]

    play(scenario)


def test_two_writers_who_expect_the_same_version_do_not_both_write(
    ensemble: ZooKeeper, branch: str
) -> None:
    async def scenario() -> None:
        address = f"{ensemble.address}/{branch}"
        async with a_store(address) as one, a_store(address) as two:
            await one.multi([Create("/a")])
            for version in range(20):
                outcomes = await asyncio.gather(
                    one.multi([SetData("/a", b"one", version)]),
                    two.multi([SetData("/a", b"two", version)]),
                    return_exceptions=True,
                )
                failures = [each for each in outcomes if isinstance(each, StoreError)]
                assert [type(each) for each in failures] == [BadVersion]

    play(scenario)
