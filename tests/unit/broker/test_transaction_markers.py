"""A marker ends a transaction in a partition that this broker leads, once."""

from __future__ import annotations

import asyncio

import pytest

from ottla.broker.transaction_markers import COMMIT_SECONDS_MAX, MarkerWriter
from ottla.errors import ErrorCode, TimedOut
from ottla.model.ids import Offset, ProducerId, TopicPartition
from unit.broker.markers import HERE, PRODUCER, control_batches, markers, open_transaction
from unit.broker.stage import ME, TWO, Stage, an_image
from unit.net.running import pass_time, run, turns

BOTH = (ME, TWO)


def a_writer(stage: Stage) -> MarkerWriter:
    open_transaction(stage)
    return MarkerWriter(stage.partitions, None, stage.clock)  # type: ignore[arg-type]


def test_a_marker_ends_the_transaction_and_observers_hear_of_it() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME))
        writer = a_writer(stage)
        heard: list[tuple[TopicPartition, ProducerId]] = []
        writer.observers.append(lambda *told: heard.append(told))
        assert stage.partition.log.last_stable_offset == 0
        await writer.write(HERE, markers(HERE))
        assert stage.partition.log.last_stable_offset == 2
        assert heard == [(HERE, PRODUCER)]

    run(scenario())


def test_a_writer_is_told_when_the_marker_is_not_committed_in_time_and_it_is_written_once() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=BOTH))
        writer = a_writer(stage)
        for _ in range(2):
            writing = asyncio.ensure_future(writer.write(HERE, markers(HERE)))
            await turns()
            await pass_time(COMMIT_SECONDS_MAX + 0.1)
            with pytest.raises(TimedOut):
                await writing
        writing = asyncio.ensure_future(writer.write(HERE, markers(HERE)))
        await turns()
        assert not writing.done(), "it can still be lost"
        stage.partition.fetched_by(TWO, Offset(2))
        await writing
        assert control_batches(stage) == 1

    run(scenario())


def test_a_marker_is_written_only_by_the_leader_and_only_to_enough_replicas() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=BOTH, isr=(ME,)), min_insync_replicas=2)
        writer = a_writer(stage)
        assert await writer.attempt(HERE, markers(HERE)) is ErrorCode.NOT_ENOUGH_REPLICAS
        stage.partition.take_role(an_image(TWO, epoch=1, replicas=BOTH))
        assert await writer.attempt(HERE, markers(HERE)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert control_batches(stage) == 0

    run(scenario())


def test_a_coordinator_that_was_replaced_is_refused() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME))
        writer = a_writer(stage)
        assert await writer.attempt(HERE, markers(HERE, coordinator_epoch=7)) is ErrorCode.NONE
        open_transaction(stage, epoch=1)
        late = markers(HERE, epoch=2, coordinator_epoch=6)
        assert await writer.attempt(HERE, late) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
        assert control_batches(stage) == 1

    run(scenario())
