"""A leader that no follower reaches hands over, if others can take what it cannot."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from ottla.broker.partition import Services
from ottla.broker.relief import Relief
from ottla.cluster.image import NO_BROKER, PartitionImage
from ottla.cluster.store import StoreUncertain
from unit.broker.leaders_metadata import ALL, Metadata
from unit.broker.stage import LAG_MS, ME, THREE, TWO, Stage, an_image
from unit.net.running import run, turns


class Scene:
    """A leader of three replicas, and its picture of the cluster."""

    def __init__(self, replicas_min: int) -> None:
        self.metadata = Metadata()
        self.stage = Stage(min_insync_replicas=replicas_min)
        self.relief = Relief(self.metadata, self.stage.standing, self._has_room)  # type: ignore[arg-type]
        services = Services(self.stage.standing, self.stage.flushes, self.stage.wishes, self.relief)
        self.partition = self.stage.partition
        self.partition._services = services
        self.partition.take_role(an_image(ME, replicas=ALL))
        self.fetch(TWO, THREE)
        self.stage.append(b"not replicated")

    async def _has_room(self) -> bool:
        return True

    @property
    def state(self) -> PartitionImage:
        return self.metadata.image.topics["topic"].partitions[0]

    def fetch(self, *followers: int, behind: int = 0) -> None:
        for follower in followers:
            self.partition.fetched_by(follower, self.partition.log.end_offset - behind)  # type: ignore[arg-type]

    async def look(self) -> None:
        self.partition.drop_laggards()
        await turns()

    def lose(self, broker: int) -> None:
        image = self.metadata.image
        left = {each: node for each, node in image.brokers.items() if each != broker}
        self.metadata.image = replace(image, brokers=left)

    def is_led_on(self) -> bool:
        return self.state.leader == ME and self.metadata.attempts == 0


@asynccontextmanager
async def a_leader(replicas_min: int = 2) -> AsyncIterator[Scene]:
    scene = Scene(replicas_min)
    yield scene
    await scene.relief.stop()


def test_a_leader_that_nobody_asks_leaves_it_to_those_in_sync() -> None:
    async def scenario() -> None:
        async with a_leader() as scene:
            scene.stage.clock.ms += LAG_MS + 1
            await scene.look()
            assert (scene.state.leader, scene.state.isr) == (NO_BROKER, (TWO, THREE))
            assert scene.stage.wishes.asked == []

    run(scenario())


def test_nothing_is_handed_over_before_the_lag_is_over() -> None:
    async def scenario() -> None:
        async with a_leader() as scene:
            scene.stage.clock.ms += LAG_MS
            await scene.look()
            assert scene.is_led_on()

    run(scenario())


def test_a_leader_whose_followers_are_slow_goes_on() -> None:
    """They ask, and never have everything: they will, and nothing needs to be lost."""

    async def scenario() -> None:
        async with a_leader() as scene:
            scene.stage.clock.ms += LAG_MS
            scene.fetch(TWO, behind=1)
            scene.stage.clock.ms += 1
            await scene.look()
            assert scene.is_led_on()
            assert scene.stage.wishes.asked == [frozenset({ME})]

    run(scenario())


def test_a_leader_that_is_left_with_enough_goes_on() -> None:
    async def scenario() -> None:
        async with a_leader() as scene:
            scene.stage.clock.ms += LAG_MS + 1
            scene.fetch(TWO)
            await scene.look()
            assert scene.is_led_on()
            assert scene.stage.wishes.asked == [frozenset({ME, TWO})]

    run(scenario())


@pytest.mark.parametrize("replicas_min", [1, 3])
def test_a_leader_goes_on_if_others_would_take_no_more_than_it(replicas_min: int) -> None:
    """With one in sync it takes what is written; with three nobody can."""

    async def scenario() -> None:
        async with a_leader(replicas_min) as scene:
            scene.stage.clock.ms += LAG_MS + 1
            await scene.look()
            assert scene.is_led_on()
            assert scene.stage.wishes.asked == [frozenset({ME})]

    run(scenario())


def test_a_leader_goes_on_if_too_few_others_live() -> None:
    async def scenario() -> None:
        async with a_leader() as scene:
            scene.lose(THREE)
            scene.stage.clock.ms += LAG_MS + 1
            await scene.look()
            assert scene.is_led_on()
            assert scene.stage.wishes.asked == [frozenset({ME})]

    run(scenario())


def test_a_leader_asks_again_if_the_store_did_not_answer() -> None:
    async def scenario() -> None:
        async with a_leader() as scene:
            scene.metadata.failures.append(StoreUncertain("the connection broke"))
            scene.stage.clock.ms += LAG_MS + 1
            await scene.look()
            assert (scene.state.leader, scene.metadata.attempts) == (ME, 1)
            await scene.look()
            assert (scene.state.leader, scene.metadata.attempts) == (NO_BROKER, 2)

    run(scenario())
