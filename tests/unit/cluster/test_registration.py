"""Registration and election of the controller, also where answers are lost or nodes in the way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from ottla.cluster import layout
from ottla.cluster.changes import NewTopic, create_topic, delete_topic
from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.image import Draft, TopicImage, image_from
from ottla.cluster.metadata import ClusterMetadata
from ottla.cluster.placement import Turn
from ottla.cluster.registration import (
    BrokerIdInUse,
    ControllerMoved,
    become_controller,
    register,
)
from ottla.cluster.store import (
    Check,
    Create,
    Delete,
    Done,
    MultiTooLarge,
    Operation,
    SetData,
    StoreUncertain,
)
from ottla.errors import ErrorCode
from ottla.model.ids import BrokerId, TopicId
from ottla.settings import BrokerSettings
from support.lossy_store import LossyStore

BROKER = BrokerId(1)
PATH = layout.broker_path(BROKER)


def a_broker(port: int = 1) -> layout.BrokerNode:
    return layout.BrokerNode(
        host="h",
        port=port,
        endpoints=(f"PLAINTEXT://h:{port}",),
        timestamp="0",
        listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
    )


def a_topic(draft: Draft, name: str, partition_count: int = 1) -> TopicImage:
    return create_topic(
        draft,
        NewTopic(name, partition_count, 1, configs={"retention.ms": "1"}),
        topic_id=TopicId(name.encode().ljust(16, b"\0")),
        turn=Turn(),
        settings=BrokerSettings(),
    )


def play(scenario: Callable[[LossyStore, ClusterMetadata], Awaitable[None]]) -> None:
    """Runs a scenario on a cluster without brokers."""

    async def run() -> None:
        store = LossyStore(await EmbeddedStore.open(None))
        await scenario(store, await ClusterMetadata.open(store, cluster_id="c"))

    asyncio.run(run())


def test_a_registration_is_an_ephemeral_node_and_its_birth_the_epoch() -> None:
    async def scenario(store: LossyStore, metadata: ClusterMetadata) -> None:
        broker = await metadata.register(BROKER, a_broker())
        node = await store.get(PATH)
        assert node is not None
        assert (node.owner, node.czxid) == (store.session.id, broker.epoch)
        assert image_from(await store.read_all("/")).brokers[BROKER] == broker
        assert store.multis[-1] == (
            Create(PATH, is_ephemeral=True),
            SetData(PATH, layout.encode(a_broker()), version=0),
        )

    play(scenario)


@pytest.mark.parametrize("was_done", [True, False])
def test_a_registration_whose_answer_was_lost_is_there_once(was_done: bool) -> None:
    async def scenario(store: LossyStore, metadata: ClusterMetadata) -> None:
        store.losses = [was_done]
        broker = await metadata.register(BROKER, a_broker())
        node = await store.get(PATH)
        assert node is not None
        assert node.czxid == broker.epoch
        attempts = [each for each in store.multis if each[-1].path == PATH]
        assert len(attempts) == (1 if was_done else 2)

    play(scenario)


def test_a_registration_of_our_previous_session_is_replaced_in_one_multi() -> None:
    async def scenario(store: LossyStore, metadata: ClusterMetadata) -> None:
        first = await metadata.register(BROKER, a_broker())
        store.session.expire()
        store.session.begin(2, timeout_ms=1_000, asked_at_ms=0)
        second = await metadata.register(BROKER, a_broker())
        assert second.epoch > first.epoch
        assert isinstance(store.multis[-1][0], Delete)
        node = await store.get(PATH)
        assert node is not None
        assert node.owner == 2

    play(scenario)


def test_a_broker_registers_anew_with_other_endpoints() -> None:
    async def scenario(_store: LossyStore, metadata: ClusterMetadata) -> None:
        first = await metadata.register(BROKER, a_broker(port=1))
        assert (await metadata.register(BROKER, a_broker(port=1))).epoch == first.epoch
        second = await metadata.register(BROKER, a_broker(port=2))
        assert second.epoch > first.epoch

    play(scenario)


def test_a_broker_id_of_another_session_is_refused() -> None:
    async def scenario(store: LossyStore, metadata: ClusterMetadata) -> None:
        await metadata.register(BROKER, a_broker())
        with pytest.raises(BrokerIdInUse, match="give this one another") as raised:
            await register(store.another_session(7), BROKER, a_broker())
        assert raised.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION

    play(scenario)


def test_a_patient_broker_takes_its_id_when_the_other_session_has_ended() -> None:
    async def scenario(store: LossyStore, metadata: ClusterMetadata) -> None:
        first = await metadata.register(BROKER, a_broker())
        other = store.another_session(7)
        waiting = asyncio.ensure_future(register(other, BROKER, a_broker(), patience_seconds=60))
        await asyncio.sleep(0)
        assert other.multis
        await store.multi([Delete(PATH)])
        assert await waiting > first.epoch
        assert store.owners[PATH] == 7

    play(scenario)


def test_patience_with_another_session_ends() -> None:
    async def scenario(store: LossyStore, metadata: ClusterMetadata) -> None:
        await metadata.register(BROKER, a_broker())
        with pytest.raises(BrokerIdInUse):
            await register(store.another_session(7), BROKER, a_broker(), patience_seconds=0.05)

    play(scenario)


@pytest.mark.parametrize("was_done", [True, False])
def test_an_election_whose_answer_was_lost_counts_once(was_done: bool) -> None:
    async def scenario(store: LossyStore, metadata: ClusterMetadata) -> None:
        store.losses = [was_done]
        assert await metadata.become_controller(BROKER, now_ms=1) == 1
        await metadata.register(BROKER, a_broker())
        await metadata.change(lambda draft: a_topic(draft, "a"))
        assert store.multis[-1][0] == Check(layout.CONTROLLER_EPOCH, 1)

    play(scenario)


def test_only_one_of_two_brokers_becomes_controller() -> None:
    async def scenario(store: LossyStore, _metadata: ClusterMetadata) -> None:
        other = store.another_session(7)
        await become_controller(store, BROKER, now_ms=1)
        with pytest.raises(ControllerMoved) as raised:
            await become_controller(other, BrokerId(2), now_ms=1)
        assert raised.value.controller_id == BROKER
        # Who lost by a lost request must not take the other's node for its own.
        other.losses = [False]
        with pytest.raises(ControllerMoved):
            await become_controller(other, BROKER, now_ms=1)

    play(scenario)


def test_a_twin_that_won_the_same_epoch_is_not_taken_for_oneself() -> None:
    async def scenario(store: LossyStore, _metadata: ClusterMetadata) -> None:
        twin = store.another_session(7)
        ask = store.multi

        async def overtaken(operations: Sequence[Operation]) -> list[Done]:
            await become_controller(twin, BROKER, now_ms=1)
            return await ask(operations)

        store.multi = overtaken  # type: ignore[method-assign]
        with pytest.raises(ControllerMoved):
            await become_controller(store, BROKER, now_ms=1)

    play(scenario)


def test_a_new_controller_shuts_the_old_one_out() -> None:
    async def scenario(store: LossyStore, metadata: ClusterMetadata) -> None:
        await metadata.register(BROKER, a_broker())
        await metadata.become_controller(BROKER, now_ms=1)
        await store.multi([Delete(layout.CONTROLLER)])
        other = await become_controller(store.another_session(7), BrokerId(2), now_ms=2)
        assert other.epoch == 2
        with pytest.raises(ControllerMoved):
            await metadata.change(lambda draft: a_topic(draft, "a"))
        await metadata.resign()
        assert await store.get(layout.CONTROLLER) is not None

    play(scenario)


@pytest.mark.parametrize("was_done", [True, False])
def test_a_change_whose_answer_was_lost_is_made_once_and_published(was_done: bool) -> None:
    async def scenario(store: LossyStore, metadata: ClusterMetadata) -> None:
        await metadata.register(BROKER, a_broker())
        await metadata.become_controller(BROKER, now_ms=1)
        store.losses = [was_done]
        topic = await metadata.change(lambda draft: a_topic(draft, "a"))
        assert metadata.image.topics == {"a": topic}
        assert metadata.image == image_from(await store.read_all("/"))

    play(scenario)


def test_a_picture_that_may_be_behind_is_read_again_before_the_next_change() -> None:
    async def scenario(store: LossyStore, metadata: ClusterMetadata) -> None:
        await metadata.register(BROKER, a_broker())
        await metadata.become_controller(BROKER, now_ms=1)
        store.losses = [False, False, False, True]
        with pytest.raises(StoreUncertain):
            await metadata.change(lambda draft: a_topic(draft, "a"))
        await metadata.change(lambda draft: a_topic(draft, "b"))
        assert sorted(metadata.image.topics) == ["a", "b"]

    play(scenario)


def test_a_large_topic_is_made_in_parts_each_guarded_and_the_topic_first() -> None:
    async def scenario(store: LossyStore, metadata: ClusterMetadata) -> None:
        await metadata.register(BROKER, a_broker())
        await metadata.become_controller(BROKER, now_ms=1)
        before = len(store.multis)
        store.multi_bytes_max = 1_000
        topic = await metadata.change(lambda draft: a_topic(draft, "a", 100))
        parts = store.multis[before:]
        assert len(parts) > 3
        assert all(part[0] == Check(layout.CONTROLLER_EPOCH, 1) for part in parts)
        assert parts[0][1].path == layout.topic_path("a")
        assert image_from(await store.read_all("/")).topics == {"a": topic}

    play(scenario)


def test_a_change_that_cannot_be_cut_is_refused_whole() -> None:
    async def scenario(store: LossyStore, metadata: ClusterMetadata) -> None:
        await metadata.register(BROKER, a_broker())
        await metadata.become_controller(BROKER, now_ms=1)
        store.multi_bytes_max = 40
        with pytest.raises(MultiTooLarge):
            await metadata.change(lambda draft: a_topic(draft, "a"))
        assert metadata.image.topics == {}
        assert image_from(await store.read_all("/")).topics == {}

    play(scenario)


def test_a_large_deletion_that_was_cut_off_is_known_and_can_be_finished() -> None:
    async def scenario(store: LossyStore, metadata: ClusterMetadata) -> None:
        await metadata.register(BROKER, a_broker())
        await metadata.become_controller(BROKER, now_ms=1)
        await metadata.change(lambda draft: a_topic(draft, "a", 1_500))
        store.multi_bytes_max = 20_000
        store.losses = [None, None, False, False, False, False]
        with pytest.raises(StoreUncertain):
            await metadata.change(lambda draft: delete_topic(draft, "a"))
        left = (await metadata.reload()).topics["a"]
        assert left.is_being_deleted
        assert sum(partition.has_leader for partition in left.partitions) < 1_500
        await metadata.change(lambda draft: delete_topic(draft, "a"))
        nodes = await store.read_all("/")
        assert not [path for path in nodes if path.endswith("/a")]

    play(scenario)
