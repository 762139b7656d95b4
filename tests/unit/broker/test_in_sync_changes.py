"""Wishes for another set in sync reach the metadata, and none is guessed about."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from ottla.broker.in_sync_changes import RETRY_SECONDS, InSyncChanges
from ottla.broker.partition import Services
from ottla.cluster.layout import RECOVERED, RECOVERING
from ottla.cluster.store import StoreFailed, StoreUncertain
from ottla.model.ids import Offset, TopicPartition
from ottla.protocol.messages.describe_topic_partitions import NOT_KNOWN, AbsenceCause
from unit.broker.cluster import a_partition, a_picture, a_topic
from unit.broker.leaders_metadata import ALL, Metadata, the_topic
from unit.broker.stage import LAG_MS, ME, THREE, TOPIC_ID, TWO, Stage, an_image
from unit.net.running import pass_time, run, turns


def a_leader(metadata: Metadata) -> tuple[Stage, InSyncChanges]:
    stage = Stage()
    changes = InSyncChanges(metadata, stage.partitions, stage.standing)  # type: ignore[arg-type]
    stage.partition._services = Services(stage.standing, stage.flushes, changes, stage.pleas)
    stage.partition.take_role(an_image(ME, replicas=ALL))
    return stage, changes


def let_three_lag(stage: Stage) -> None:
    stage.append(b"a")
    stage.partition.fetched_by(TWO, Offset(1))
    stage.clock.ms += LAG_MS + 1
    stage.partition.fetched_by(TWO, Offset(1))


def members(stage: Stage) -> Any:
    assert stage.partition.in_sync is not None
    return stage.partition.in_sync.members


def test_a_leader_that_was_stopped_itself_first_hears_what_members_ask() -> None:
    async def scenario() -> None:
        metadata = Metadata()
        stage, changes = a_leader(metadata)
        changes.start()
        await turns()
        let_three_lag(stage)
        await pass_time(LAG_MS / 1000 + 1)
        assert metadata.isr == {ME, TWO, THREE}
        await pass_time(LAG_MS / 1000 + 1)
        assert metadata.isr == {ME, TWO}, "it is always late, and looks all the same"
        await changes.stop()

    run(scenario())


def test_a_member_that_lags_is_looked_for_and_leaves() -> None:
    async def scenario() -> None:
        metadata = Metadata()
        stage, changes = a_leader(metadata)
        changes.start()
        await turns()
        let_three_lag(stage)
        assert stage.high_watermark == 0
        await pass_time(LAG_MS / 2000 + 0.1)
        assert metadata.isr == {ME, TWO}
        assert members(stage) == {ME, TWO}
        assert stage.high_watermark == 1
        await changes.stop()

    run(scenario())


def test_a_follower_that_caught_up_joins() -> None:
    async def scenario() -> None:
        metadata = Metadata()
        stage, changes = a_leader(metadata)
        let_three_lag(stage)
        stage.partition.drop_laggards()
        await turns()
        stage.partition.fetched_by(THREE, Offset(1))
        await turns()
        assert metadata.isr == members(stage) == set(ALL)
        await changes.stop()

    run(scenario())


def test_a_change_the_store_lost_is_made_again_until_it_is_settled() -> None:
    async def scenario() -> None:
        metadata = Metadata()
        stage, changes = a_leader(metadata)
        let_three_lag(stage)
        metadata.failures += [StoreFailed("no quorum"), StoreUncertain("no answer")]
        stage.partition.drop_laggards()
        await turns()
        assert stage.high_watermark == 0, "nobody knows whether it has left"
        for _ in range(2):
            await pass_time(RETRY_SECONDS)
        assert members(stage) == metadata.isr == {ME, TWO}
        assert stage.high_watermark == 1
        await changes.stop()

    run(scenario())


def test_a_lost_change_is_not_made_again_by_who_was_deposed() -> None:
    async def scenario() -> None:
        metadata = Metadata()
        stage, changes = a_leader(metadata)
        let_three_lag(stage)
        metadata.failures.append(StoreUncertain("no answer"))
        stage.partition.drop_laggards()
        await turns()
        stage.partition.take_role(an_image(TWO, epoch=1, replicas=ALL))
        await pass_time(5 * RETRY_SECONDS)
        assert metadata.attempts == 1
        await changes.stop()

    run(scenario())


def test_a_change_that_is_refused_can_be_wished_again() -> None:
    async def scenario() -> None:
        metadata = Metadata()
        stage, changes = a_leader(metadata)
        let_three_lag(stage)
        led = metadata.image
        metadata.held_until = asyncio.Event()
        stage.partition.drop_laggards()
        await turns()
        # The store knows another leader already; this one has not heard of it.
        metadata.image = a_picture(the_topic(a_partition(0, TWO, *ALL, epoch=1)))
        metadata.held_until.set()
        await turns()
        assert stage.partition.in_sync is not None
        assert stage.partition.in_sync.proposal is None
        assert members(stage) == set(ALL)
        assert stage.high_watermark == 0
        metadata.image = led
        stage.partition.drop_laggards()
        await turns()
        assert metadata.isr == {ME, TWO}
        await changes.stop()

    run(scenario())


def test_an_old_refusal_does_not_touch_a_later_epochs_proposal() -> None:
    async def scenario() -> None:
        metadata = Metadata()
        stage, changes = a_leader(metadata)
        let_three_lag(stage)
        metadata.held_until = asyncio.Event()
        stage.partition.drop_laggards()
        await turns()
        metadata.image = a_picture(the_topic(a_partition(0, ME, *ALL, epoch=2)))
        stage.partition.take_role(an_image(ME, epoch=2, replicas=ALL, partition_epoch=2))
        stage.partition.fetched_by(TWO, Offset(1))
        stage.clock.ms += LAG_MS + 1
        in_sync = stage.partition.in_sync
        assert in_sync is not None
        in_sync.propose({ME, TWO})
        metadata.held_until.set()
        await turns()
        assert in_sync.proposal is not None
        await changes.stop()

    run(scenario())


def test_nobody_is_taken_in_whom_the_cluster_does_not_know() -> None:
    async def scenario() -> None:
        metadata = Metadata()
        stage, changes = a_leader(metadata)
        let_three_lag(stage)
        stage.partition.drop_laggards()
        await turns()
        gone = replace(metadata.image, brokers={ME: metadata.image.brokers[ME]})
        back, metadata.image = metadata.image, gone
        stage.partition.fetched_by(THREE, Offset(1))
        await turns()
        assert metadata.isr == {ME, TWO}
        metadata.image = back
        stage.partition.fetched_by(THREE, Offset(1))
        await turns()
        assert metadata.isr == set(ALL)
        await changes.stop()

    run(scenario())


def test_a_leader_of_an_unclean_election_has_recovered_when_it_takes_others_in() -> None:
    async def scenario() -> None:
        metadata = Metadata()
        stage, changes = a_leader(metadata)
        let_three_lag(stage)
        unclean = replace(a_partition(0, ME, *ALL), recovery_state=RECOVERING)
        metadata.image = replace(metadata.image, topics={"topic": the_topic(unclean)})
        stage.partition.drop_laggards()
        await turns()
        (state,) = metadata.image.topics["topic"].partitions
        assert set(state.isr) == {ME, TWO}
        assert state.recovery_state == RECOVERED
        await changes.stop()

    run(scenario())


def test_why_a_member_left_is_remembered_until_it_is_back() -> None:
    async def scenario() -> None:
        metadata = Metadata()
        stage, changes = a_leader(metadata)
        changes.start()
        let_three_lag(stage)
        stage.partition.drop_laggards()
        await turns()
        found = changes.absences.of(stage.partition.id)
        assert set(found) == {THREE}
        left = found[THREE]
        assert left.cause is AbsenceCause.SILENT
        assert (left.lag_ms, left.lag_records) == (LAG_MS + 1, NOT_KNOWN)
        stage.partition.fetched_by(THREE, Offset(1))
        await turns()
        assert not changes.absences.of(stage.partition.id)
        await changes.stop()

    run(scenario())


def test_a_wish_that_was_refused_leaves_no_reason_behind() -> None:
    async def scenario() -> None:
        metadata = Metadata()
        stage, changes = a_leader(metadata)
        let_three_lag(stage)
        metadata.image = replace(
            metadata.image,
            topics={"topic": the_topic(replace(a_partition(0, ME, *ALL), partition_epoch=7))},
        )
        stage.partition.drop_laggards()
        await turns()
        assert metadata.isr == set(ALL)
        assert not changes.absences.of(stage.partition.id)
        await changes.stop()

    run(scenario())


def test_a_wish_that_the_controller_overtook_does_not_bring_back_whom_it_took_out() -> None:
    async def scenario() -> None:
        metadata = Metadata()
        stage, changes = a_leader(metadata)
        let_three_lag(stage)
        stage.partition.drop_laggards()
        await turns()
        metadata.held_until = asyncio.Event()
        stage.partition.fetched_by(THREE, Offset(1))
        await turns()
        # Two has died, and the controller has seen it; the leader has not heard of that.
        led = metadata.image.topics["topic"].partitions[0]
        taken_out = replace(led, isr=(ME,), partition_epoch=led.partition_epoch + 1)
        metadata.image = a_picture(the_topic(taken_out), brokers=ALL)
        metadata.held_until.set()
        await turns()
        assert metadata.isr == members(stage) == {ME}
        stage.partition.fetched_by(THREE, Offset(1))
        await turns()
        assert metadata.isr == members(stage) == {ME, THREE}
        await changes.stop()

    run(scenario())


def test_wishes_that_come_while_one_is_carried_out_are_carried_out_together() -> None:
    async def scenario() -> None:
        count = 20
        metadata = Metadata()
        states = [a_partition(index, ME, *ALL) for index in range(count)]
        topic = replace(a_topic("topic", *states), id=TOPIC_ID)
        metadata.image = a_picture(topic, brokers=ALL)
        stages = [a_leader(metadata)[0] for _ in range(count)]
        changes = InSyncChanges(metadata, stages[0].partitions, stages[0].standing)  # type: ignore[arg-type]
        for index, stage in enumerate(stages):
            stage.partition.id = TopicPartition("topic", index)
            stage.partition._services = Services(
                stage.standing, stage.flushes, changes, stage.pleas
            )
            let_three_lag(stage)
            stage.partition.drop_laggards()
        await turns()
        assert metadata.attempts == 1
        assert {each.isr for each in metadata.image.topics["topic"].partitions} == {(ME, TWO)}
        assert all(members(stage) == {ME, TWO} for stage in stages)
        await changes.stop()

    run(scenario())


def test_nobody_waits_for_a_broker_that_kept_up_outside_the_set_and_died() -> None:
    async def scenario() -> None:
        metadata = Metadata()
        stage, changes = a_leader(metadata)
        changes.start()
        stage.partition.take_role(an_image(ME, replicas=ALL, isr=(ME, TWO), partition_epoch=1))
        metadata.held_until = asyncio.Event()  # THREE asks to be let in, and is not heard
        stage.append(b"a")
        for follower in (TWO, THREE):
            stage.partition.fetched_by(follower, Offset(1))
        in_sync = stage.partition.in_sync
        assert in_sync is not None
        in_sync.refused()
        stage.append(b"b")
        stage.partition.fetched_by(TWO, Offset(2))
        assert stage.partition.log.high_watermark == 1
        metadata.image = replace(metadata.image, brokers={ME: None, TWO: None})
        for observer in metadata.observers:
            observer(metadata.image)
        assert stage.partition.log.high_watermark == 2
        await changes.stop()
        assert not metadata.observers

    run(scenario())
