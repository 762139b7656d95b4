"""A leader that cannot write lets another lead, and loses nothing it took."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from ottla.broker.partition import Services
from ottla.broker.relief import CATCH_UP_SECONDS, RETRY_SECONDS, Relief
from ottla.cluster.image import NO_BROKER, PartitionImage
from ottla.cluster.store import StoreUncertain
from ottla.errors import ErrorCode, RequestFailed, StorageFailed
from ottla.model.ids import LeaderEpoch, Offset
from unit.broker.leaders_metadata import ALL, Metadata
from unit.broker.stage import ME, THREE, TWO, Stage, an_image
from unit.net.running import pass_time, run, turns


class Scene:
    """A leader with a full disk, its picture of the cluster, and two followers."""

    def __init__(self) -> None:
        self.metadata = Metadata()
        self.stage = Stage()
        self.relief = Relief(self.metadata, self.stage.standing, self.has_room)  # type: ignore[arg-type]
        services = Services(self.stage.standing, self.stage.flushes, self.stage.wishes, self.relief)
        self.partition = self.stage.partition
        self.partition._services = services
        self.partition.take_role(an_image(ME, replicas=ALL))

    async def has_room(self) -> bool:
        return self.stage.world.disk.space_bytes is None

    @property
    def state(self) -> PartitionImage:
        return self.metadata.image.topics["topic"].partitions[0]

    def is_refused(self) -> ErrorCode | None:
        """Tries to write."""
        try:
            self.stage.append(b"more")
        except (StorageFailed, RequestFailed) as error:
            return error.code
        return None

    def let_followers_fetch(self) -> None:
        for follower in (TWO, THREE):
            self.partition.fetched_by(follower, self.partition.log.end_offset)

    def lead_again(self, *isr: int) -> None:
        """As if the controller had elected this broker again."""
        after = replace(
            self.state,
            leader=ME,
            isr=isr,
            leader_epoch=LeaderEpoch(self.state.leader_epoch + 1),
            partition_epoch=self.state.partition_epoch + 1,
        )
        topic = self.metadata.image.topics["topic"]
        topics = {"topic": replace(topic, partitions=(after,))}
        self.metadata.image = replace(self.metadata.image, topics=topics)
        self.partition.take_role(after)


@asynccontextmanager
async def a_full_disk() -> AsyncIterator[Scene]:
    scene = Scene()
    scene.stage.append(b"first")
    scene.stage.world.disk.space_bytes = 0
    yield scene
    await scene.relief.stop()


def test_a_leader_that_cannot_write_gives_up_when_the_others_have_everything() -> None:
    async def scenario() -> None:
        async with a_full_disk() as scene:
            assert scene.is_refused() is ErrorCode.KAFKA_STORAGE_ERROR
            await turns()
            assert scene.state.leader == ME, "the others lack a record"
            scene.let_followers_fetch()
            await turns()
            state = scene.state
            assert (state.leader, state.leader_epoch, state.isr) == (NO_BROKER, 1, (TWO, THREE))

    run(scenario())


def test_nothing_is_taken_from_the_moment_on_in_which_another_is_looked_for() -> None:
    async def scenario() -> None:
        async with a_full_disk() as scene:
            scene.is_refused()
            scene.stage.world.disk.space_bytes = None
            end_offset = scene.partition.log.end_offset
            assert scene.is_refused() is ErrorCode.KAFKA_STORAGE_ERROR
            scene.let_followers_fetch()
            await turns()
            assert scene.state.leader == NO_BROKER
            assert scene.is_refused() is ErrorCode.KAFKA_STORAGE_ERROR, "no news have come yet"
            assert scene.partition.log.end_offset == end_offset
            scene.lead_again(*ALL)
            assert scene.is_refused() is None

    run(scenario())


def test_a_leader_nobody_catches_up_with_goes_on_and_asks_again() -> None:
    async def scenario() -> None:
        async with a_full_disk() as scene:
            scene.is_refused()
            await turns()
            await pass_time(CATCH_UP_SECONDS + 1)
            scene.stage.world.disk.space_bytes = None
            assert (scene.is_refused(), scene.state.leader) == (None, ME)
            scene.stage.world.disk.space_bytes = 0
            scene.is_refused()
            scene.let_followers_fetch()
            await turns()
            assert scene.state.leader == NO_BROKER

    run(scenario())


def test_the_only_one_in_sync_goes_on_leading() -> None:
    async def scenario() -> None:
        async with a_full_disk() as scene:
            scene.lead_again(ME)
            assert scene.is_refused() is ErrorCode.KAFKA_STORAGE_ERROR
            await turns()
            assert (scene.metadata.attempts, scene.state.leader) == (0, ME)
            scene.stage.world.disk.space_bytes = None
            assert scene.is_refused() is None

    run(scenario())


def test_who_gave_up_is_ailing_until_its_disk_takes_something_again() -> None:
    async def scenario() -> None:
        async with a_full_disk() as scene:
            scene.is_refused()
            scene.let_followers_fetch()
            await turns()
            scene.partition.take_role(scene.state)
            for _ in range(3):
                await pass_time(RETRY_SECONDS)
                assert scene.partition.is_ailing
            scene.stage.world.disk.space_bytes = None
            scene.partition.log.fence("a sync failed")
            await pass_time(RETRY_SECONDS)
            assert scene.partition.is_ailing, "it has to be opened again"
            scene.partition.reopened(scene.stage.world.open())
            await pass_time(RETRY_SECONDS)
            assert not scene.partition.is_ailing

    run(scenario())


def test_who_was_deposed_before_it_could_give_up_follows_like_anybody() -> None:
    async def scenario() -> None:
        async with a_full_disk() as scene:
            scene.is_refused()
            scene.partition.take_role(an_image(TWO, epoch=1, replicas=ALL))
            await turns()
            assert not scene.partition.is_ailing

    run(scenario())


def test_an_answer_that_was_lost_is_asked_for_again() -> None:
    async def scenario() -> None:
        async with a_full_disk() as scene:
            scene.metadata.failures.append(StoreUncertain("the connection broke"))
            scene.is_refused()
            scene.let_followers_fetch()
            await turns()
            scene.stage.world.disk.space_bytes = None
            assert scene.is_refused() is ErrorCode.KAFKA_STORAGE_ERROR, "it may have happened"
            await pass_time(RETRY_SECONDS + 1)
            assert scene.state.leader == NO_BROKER

    run(scenario())


def test_one_who_was_deposed_meanwhile_gives_nothing_up() -> None:
    async def scenario() -> None:
        async with a_full_disk() as scene:
            scene.metadata.held_until = asyncio.Event()
            scene.is_refused()
            scene.let_followers_fetch()
            await turns()
            scene.lead_again(*ALL)
            scene.metadata.held_until.set()
            await turns()
            assert (scene.state.leader, scene.state.leader_epoch) == (ME, 1)
            scene.stage.world.disk.space_bytes = None
            assert scene.is_refused() is None

    run(scenario())


@pytest.mark.parametrize("isr", [(ME,), (TWO, THREE)])
def test_records_that_cannot_be_written_are_said_so_in_any_case(isr: tuple[int, ...]) -> None:
    """Also where this broker leads by what it knows, and the picture says otherwise already."""

    async def scenario() -> None:
        async with a_full_disk() as scene:
            topic = scene.metadata.image.topics["topic"]
            after = replace(scene.state, isr=isr, leader=ME if ME in isr else NO_BROKER)
            topics = {"topic": replace(topic, partitions=(after,))}
            scene.metadata.image = replace(scene.metadata.image, topics=topics)
            assert scene.is_refused() is ErrorCode.KAFKA_STORAGE_ERROR
            assert not scene.partition.is_ailing
            assert scene.partition.log.end_offset == Offset(1)

    run(scenario())
