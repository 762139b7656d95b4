"""The picture in force: committed before it is published, and never behind the store."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ottla.cluster import layout
from ottla.cluster.changes import NewTopic, change_in_sync, create_topic
from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.image import BrokerImage, Draft, TopicImage, image_from
from ottla.cluster.metadata import ClusterMetadata
from ottla.cluster.placement import Turn
from ottla.cluster.producer_ids import BLOCK_SIZE, PRODUCER_ID_MAX, ProducerIds, next_block
from ottla.cluster.registration import ControllerMoved
from ottla.cluster.store import Create, Delete, Done, Node, Operation, SetData, StoreFailed
from ottla.errors import ErrorCode, TopicExists
from ottla.model.ids import BrokerId, TopicId
from ottla.settings import BrokerSettings
from support.eventually import eventually_async

T = TypeVar("T")
BROKER = BrokerId(1)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


def a_registration() -> layout.BrokerNode:
    return layout.BrokerNode(
        host="h",
        port=1,
        endpoints=("PLAINTEXT://h:1",),
        timestamp="0",
        rack="r",
        listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
    )


def a_topic(name: str, draft: Draft, *, replicas: int = 1) -> TopicImage:
    return create_topic(
        draft,
        NewTopic(name, 1, replicas),
        topic_id=TopicId(name.encode().ljust(16, b"\0")),
        turn=Turn(),
        settings=BrokerSettings(),
    )


async def started(path: Path | None) -> ClusterMetadata:
    metadata = await ClusterMetadata.open(await EmbeddedStore.open(path), cluster_id="new")
    await metadata.register(BROKER, a_registration())
    await metadata.become_controller(BROKER, now_ms=1)
    return metadata


def test_a_restart_finds_everything_and_a_larger_epoch(tmp_path: Path) -> None:
    async def life(cluster_id: str, topic: str) -> tuple[ClusterMetadata, BrokerImage]:
        store = await EmbeddedStore.open(tmp_path / "metadata")
        metadata = await ClusterMetadata.open(store, cluster_id=cluster_id)
        assert metadata.image.brokers == {}
        broker = await metadata.register(BROKER, a_registration())
        await metadata.become_controller(BROKER, now_ms=1)
        await metadata.change(lambda draft: a_topic(topic, draft))
        await store.close()
        return metadata, broker

    first, first_broker = run(life("one", "a"))
    second, second_broker = run(life("two", "b"))
    assert first.image.cluster_id == second.image.cluster_id == "one"
    assert sorted(second.image.topics) == ["a", "b"]
    assert second.image.topics["a"] == first.image.topics["a"]
    assert second_broker.epoch > first_broker.epoch
    assert second.image.controller_epoch == first.image.controller_epoch + 1
    assert second_broker.rack == "r"


def test_a_wish_that_is_refused_changes_nothing() -> None:
    async def scenario() -> None:
        metadata = await started(None)
        await metadata.change(lambda draft: a_topic("a", draft))
        before = metadata.image
        with pytest.raises(TopicExists):
            await metadata.change(lambda draft: a_topic("a", draft))
        assert metadata.image is before

    run(scenario())


def test_changes_made_at_once_are_all_there(tmp_path: Path) -> None:
    async def scenario() -> None:
        metadata = await started(tmp_path / "metadata")
        await asyncio.gather(
            *(metadata.change(lambda draft, n=n: a_topic(f"t{n}", draft)) for n in range(20))
        )
        assert len(metadata.image.topics) == 20
        assert metadata.image == image_from(await metadata.store.read_all("/"))
        await metadata.store.close()

    run(scenario())


def test_a_cancelled_caller_leaves_picture_and_store_agreed(tmp_path: Path) -> None:
    async def scenario() -> None:
        metadata = await started(tmp_path / "metadata")
        task = asyncio.ensure_future(metadata.change(lambda draft: a_topic("a", draft)))
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        await metadata.change(lambda draft: a_topic("b", draft))
        assert sorted(metadata.image.topics) == ["a", "b"]
        assert metadata.image == image_from(await metadata.store.read_all("/"))
        await metadata.store.close()

    run(scenario())


def test_a_change_by_somebody_else_is_read_and_the_wish_decided_again() -> None:
    async def scenario() -> None:
        metadata = await started(None)
        other = await ClusterMetadata.open(metadata.store, cluster_id="c")
        await other.change_as_leader(lambda draft: a_topic("a", draft))
        with pytest.raises(TopicExists):
            await metadata.change(lambda draft: a_topic("a", draft))
        assert metadata.image.topics == other.image.topics

    run(scenario())


def test_a_deposed_controller_writes_nothing_and_knows_it_is_none() -> None:
    async def scenario() -> None:
        metadata = await started(None)
        await metadata.store.multi([SetData(layout.CONTROLLER_EPOCH, b"9")])
        with pytest.raises(ControllerMoved) as raised:
            await metadata.change(lambda draft: a_topic("a", draft))
        assert raised.value.code is ErrorCode.NOT_CONTROLLER
        assert not metadata.is_controller
        with pytest.raises(ControllerMoved):
            await metadata.change(lambda draft: a_topic("a", draft))
        assert image_from(await metadata.store.read_all("/")).topics == {}

    run(scenario())


def test_a_broker_that_never_was_controller_decides_nothing() -> None:
    async def scenario() -> None:
        store = await EmbeddedStore.open(None)
        metadata = await ClusterMetadata.open(store, cluster_id="c")
        with pytest.raises(ControllerMoved):
            await metadata.change(lambda draft: a_topic("a", draft))

    run(scenario())


def test_a_leader_changes_its_set_in_sync_without_being_controller() -> None:
    async def scenario() -> None:
        metadata = await started(None)
        topic = await metadata.change(lambda draft: a_topic("a", draft))
        await metadata.resign()
        led = topic.partitions[0]
        changed = await metadata.change_as_leader(
            lambda draft: change_in_sync(draft, "a", 0, led=led, isr=[BROKER])
        )
        assert changed.partition_epoch == led.partition_epoch + 1

    run(scenario())


def test_who_resigned_makes_room_for_the_next_controller() -> None:
    async def scenario() -> None:
        metadata = await started(None)
        with pytest.raises(ControllerMoved):
            await metadata.become_controller(BrokerId(2), now_ms=2)
        await metadata.resign()
        await metadata.resign()
        assert await metadata.become_controller(BrokerId(2), now_ms=2) == 2
        assert metadata.is_controller

    run(scenario())


def test_brokers_that_start_a_new_cluster_together_agree_on_its_id() -> None:
    async def scenario() -> None:
        store = await EmbeddedStore.open(None)
        opened = await asyncio.gather(
            *(ClusterMetadata.open(OneStepAStore(store), cluster_id=str(n)) for n in range(5))
        )
        assert len({metadata.image.cluster_id for metadata in opened}) == 1

    run(scenario())


class OneStepAStore:
    """Lets every other user of the same store have a turn before each operation."""

    def __init__(self, store: EmbeddedStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def multi(self, operations: Sequence[Operation]) -> list[Done]:
        await asyncio.sleep(0)
        return await self._store.multi(operations)


@pytest.mark.parametrize("says_it_stops", [True, False])
def test_who_left_a_set_in_sync_before_it_left_the_cluster_is_seen_to(says_it_stops: bool) -> None:
    """Both are there when the news are read; only their order tells a stop from a death."""
    other = BrokerId(2)

    async def scenario() -> list[tuple[bool, bool]]:
        writer = await started(None)
        follower = await ClusterMetadata.open(writer.store, cluster_id="c")
        follower.follow()
        await writer.register(other, a_registration())
        topic = await writer.change(lambda draft: a_topic("a", draft, replicas=2))
        await eventually_async(lambda: follower.image == writer.image)
        leaves = Draft(writer.image)
        change_in_sync(leaves, "a", 0, led=topic.partitions[0], isr=[BROKER])
        goes: list[Operation] = [Delete(f"{layout.BROKER_IDS}/{other}")]
        seen: list[tuple[bool, bool]] = []
        follower.observers.append(
            lambda image: seen.append(
                (other in image.topics["a"].partitions[0].isr, other in image.brokers)
            )
        )
        leaves_first = [*leaves.operations, *goes]
        await writer.store.multi(leaves_first if says_it_stops else leaves_first[::-1])
        await eventually_async(lambda: (False, False) in seen)
        await follower.stop_following()
        return seen

    assert ((False, True) in run(scenario())) is says_it_stops


def test_producer_ids_are_never_given_twice(tmp_path: Path) -> None:
    async def life() -> list[int]:
        store = await EmbeddedStore.open(tmp_path / "metadata")
        one, other = ProducerIds(store, BROKER), ProducerIds(store, BrokerId(2))
        ids = await asyncio.gather(
            *(source.next() for source in (one, other) for _ in range(BLOCK_SIZE + 5))
        )
        await store.close()
        return [*ids]

    ids = run(life()) + run(life())
    assert len(set(ids)) == len(ids)
    assert min(ids) == 0


def test_a_block_follows_the_last_one_with_a_check_of_its_version() -> None:
    block, operation = next_block(None, BROKER)
    assert block == range(BLOCK_SIZE)
    assert isinstance(operation, Create)
    block, operation = next_block(Node(operation.data, 7, 1, 1), BROKER)
    assert block == range(BLOCK_SIZE, 2 * BLOCK_SIZE)
    assert isinstance(operation, SetData)
    assert operation.version == 7


def test_producer_ids_end() -> None:
    last = layout.ProducerIdBlockNode(
        broker=1, block_start="0", block_end=str(PRODUCER_ID_MAX - 10)
    )
    with pytest.raises(StoreFailed, match="used up"):
        next_block(Node(layout.encode(last), 0, 1, 1), BROKER)
