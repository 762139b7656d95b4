"""Shards run where their partition is led, and only there; keys are found where they are kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ottla.broker.coordinator import RELOAD_SECONDS, Coordinator, InternalTopic
from ottla.broker.partition import Partition
from ottla.broker.peers import PeerUnreachable
from ottla.broker.shard_runtime import ShardRuntime
from ottla.cluster.changes import NewTopic
from ottla.cluster.image import ClusterImage, TopicImage
from ottla.coordination.decision import NOTHING, Ticket
from ottla.coordination.partitioning import partition_of
from ottla.errors import ErrorCode, OttlaError, RequestFailed
from ottla.model.ids import BrokerId, Offset
from unit.broker.cluster import Member, a_partition, a_picture, a_topic
from unit.broker.test_shard_runtime import Ledger, writing
from unit.net.running import pass_time, run, turns

TOPIC = InternalTopic("__states", 2, 3, {"cleanup.policy": "compact"}, 5.0)


def key_on(partition: int) -> str:
    return next(f"key {n}" for n in range(100) if partition_of(f"key {n}", 2) == partition)


def led_by(zero: int, one: int, *, epoch: int = 0, incarnation: int = 0) -> ClusterImage:
    """The internal topic with two partitions on two brokers."""
    topic = a_topic(
        TOPIC.name,
        a_partition(0, zero, 1, 2, epoch=epoch),
        a_partition(1, one, 1, 2, epoch=epoch),
        incarnation=incarnation,
    )
    return a_picture(topic, brokers=(1, 2))


class Scene:
    """A member of a cluster with a coordinator on it."""

    def __init__(self, image: ClusterImage) -> None:
        self.member = Member(image)
        self.made: list[int] = []
        self.coordinator: Coordinator[Ledger] = Coordinator(
            TOPIC, self._make, self.member.partitions, self.member.view, self.member.clock
        )
        self.member.follower.observers.append(self.coordinator.changed)

    def _make(self, partition: Partition) -> Ledger:
        self.made.append(partition.id.partition)
        return Ledger()

    def code_for(self, partition: int) -> ErrorCode:
        """What whoever asks about a key of that partition is told."""
        try:
            self.coordinator.find(key_on(partition))
        except RequestFailed as refusal:
            return refusal.code
        return ErrorCode.NONE


@asynccontextmanager
async def a_scene(image: ClusterImage) -> AsyncIterator[Scene]:
    scene = Scene(image)
    await scene.member.follower.start()
    await turns()
    try:
        yield scene
    finally:
        scene.coordinator.stop()
        await scene.member.follower.stop()


def test_shards_run_for_what_this_broker_leads() -> None:
    async def scenario() -> None:
        async with a_scene(led_by(1, 2)) as scene:
            assert scene.made == [0]
            assert scene.code_for(0) is ErrorCode.NONE
            assert scene.code_for(1) is ErrorCode.NOT_COORDINATOR
            assert scene.coordinator.broker_of(key_on(0)) == 1
            assert scene.coordinator.broker_of(key_on(1)) == 2

    run(scenario())


def test_shards_come_and_go_with_leadership_and_whoever_waits_is_told() -> None:
    async def scenario() -> None:
        async with a_scene(led_by(1, 2)) as scene:
            first = scene.coordinator.find(key_on(0)).runtime
            waiting = asyncio.ensure_future(first.ask(lambda _ticket, _now_ms: NOTHING))
            await turns()
            await scene.member.show(led_by(2, 1, epoch=1))
            await turns()
            with pytest.raises(RequestFailed) as caught:
                await waiting
            assert caught.value.code is ErrorCode.NOT_COORDINATOR
            assert first.is_closed
            assert scene.code_for(0) is ErrorCode.NOT_COORDINATOR
            assert scene.code_for(1) is ErrorCode.NONE

    run(scenario())


def test_a_new_leader_epoch_begins_with_a_new_shard_from_the_log() -> None:
    async def scenario() -> None:
        async with a_scene(led_by(1, 2)) as scene:
            before = scene.coordinator.find(key_on(0))
            before.runtime.carry_out(writing(b"a")(Ticket(1), 0))
            await scene.member.show(led_by(1, 2, epoch=2))
            assert before.runtime.is_closed
            assert scene.code_for(0) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            scene.member.partitions.find(TOPIC.name, 0).fetched_by(BrokerId(2), Offset(1))
            await turns()
            assert scene.code_for(0) is ErrorCode.NONE
            assert scene.coordinator.find(key_on(0)).shard.keys == [b"a"]

    run(scenario())


def test_a_shard_that_knows_of_the_same_epoch_stays() -> None:
    async def scenario() -> None:
        async with a_scene(led_by(1, 2)) as scene:
            before = scene.coordinator.find(key_on(0))
            scene.coordinator.update()
            await scene.member.show(led_by(1, 2))
            assert scene.coordinator.find(key_on(0)) is before

    run(scenario())


def test_a_topic_made_anew_has_new_shards() -> None:
    async def scenario() -> None:
        async with a_scene(led_by(1, 2)) as scene:
            before = scene.coordinator.find(key_on(0))
            await scene.member.show(led_by(1, 2, incarnation=1))
            await turns()
            assert before.runtime.is_closed
            assert scene.coordinator.find(key_on(0)) is not before

    run(scenario())


def test_without_a_leader_or_a_topic_there_is_no_coordinator() -> None:
    async def scenario() -> None:
        async with a_scene(led_by(-1, 2)) as scene:
            with pytest.raises(RequestFailed) as caught:
                scene.coordinator.broker_of(key_on(0))
            assert caught.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
            await scene.member.show(a_picture(brokers=(1, 2)))
            assert scene.code_for(0) is ErrorCode.COORDINATOR_NOT_AVAILABLE

    run(scenario())


def test_a_stopped_coordinator_loads_nothing_more() -> None:
    async def scenario() -> None:
        async with a_scene(led_by(1, 2)) as scene:
            scene.coordinator.stop()
            await scene.member.show(led_by(1, 1, epoch=1))
            assert scene.made == [0]
            assert scene.code_for(0) is ErrorCode.NOT_COORDINATOR

    run(scenario())


class Creator:
    """Has topics created, or fails as it is told."""

    def __init__(self, failure: OttlaError | None = None) -> None:
        self.wishes: list[NewTopic] = []
        self._failure = failure

    async def create_topics(
        self, wishes: Sequence[NewTopic], *, validate_only: bool
    ) -> Sequence[TopicImage | OttlaError]:
        assert not validate_only
        self.wishes += wishes
        if self._failure is not None:
            raise self._failure
        return [a_topic(wish.name) for wish in wishes]


@pytest.mark.parametrize(("settings", "replicas"), [({}, 1), ({"metadata": "zookeeper://a"}, 3)])
def test_the_topic_has_the_replicas_it_was_set_to_unless_the_broker_stands_alone(
    settings: dict[str, Any], replicas: int
) -> None:
    async def scenario() -> None:
        async with a_scene(a_picture(brokers=(1, 2))) as scene:
            creator = Creator()
            view = scene.member.view
            view.settings = view.layers.settings()
            for name, value in settings.items():
                object.__setattr__(view.settings, name, value)
            await scene.coordinator.ensure_topic(creator)
            (wish,) = creator.wishes
            assert (wish.name, wish.partition_count) == (TOPIC.name, 2)
            assert wish.replication_factor == replicas
            await scene.member.show(led_by(1, 2))
            await scene.coordinator.ensure_topic(creator)
            assert len(creator.wishes) == 1

    run(scenario())


def test_clients_ask_again_when_the_topic_cannot_be_created_now() -> None:
    async def scenario() -> None:
        async with a_scene(a_picture(brokers=(1, 2))) as scene:
            with pytest.raises(RequestFailed) as caught:
                await scene.coordinator.ensure_topic(Creator(PeerUnreachable(2, "it is dead")))
            assert caught.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE

    run(scenario())


def test_looking_for_a_coordinator_waits_for_its_load_but_not_for_ever() -> None:
    async def scenario() -> None:
        async with a_scene(led_by(1, 2)) as scene:
            before = scene.coordinator.find(key_on(0))
            before.runtime.carry_out(writing(b"a")(Ticket(1), 0))
            await scene.member.show(led_by(1, 2, epoch=2))
            await scene.coordinator.wait_loaded(key_on(1))  # is elsewhere
            waiting = asyncio.ensure_future(scene.coordinator.wait_loaded(key_on(0)))
            await turns()
            assert not waiting.done()
            await waiting
            assert scene.code_for(0) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    run(scenario())


def test_a_shard_whose_log_cannot_be_read_is_loaded_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(ShardRuntime, "_replay_from", _fail)
            async with a_scene(led_by(1, 2)) as scene:
                assert scene.code_for(0) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                patch.undo()
                await pass_time(RELOAD_SECONDS + 1)
                assert scene.code_for(0) is ErrorCode.NONE
                assert scene.made == [0, 0]

    run(scenario())


async def _fail(*_: object) -> None:
    raise OSError("the disk does not answer")
