"""Markers reach every partition of a transaction, however often it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from ottla.broker.transaction_markers import COMMIT_SECONDS_MAX, RETRY_SECONDS, MarkerWriter
from ottla.coordination.transaction.decision import WriteMarkers
from ottla.errors import TimedOut
from ottla.model.ids import Offset, ProducerEpoch, ProducerId, TopicPartition
from unit.broker.stage import ME, TWO, Stage, an_image
from unit.net.running import pass_time, run, turns
from unit.storage.logs import batches_from, transactional

HERE, GONE = TopicPartition("topic", 0), TopicPartition("deleted", 0)
PRODUCER = ProducerId(9)


def markers(
    *partitions: TopicPartition, epoch: int = 1, coordinator_epoch: int = 3, version: int = 2
) -> WriteMarkers:
    return WriteMarkers(
        transactional_id="transfers",
        producer_id=PRODUCER,
        producer_epoch=ProducerEpoch(epoch),
        coordinator_epoch=coordinator_epoch,
        is_commit=True,
        partitions=partitions,
        transaction_version=version,
        serial=1,
    )


class Reports:
    """Keeps what is reported as written."""

    def __init__(self) -> None:
        self.partitions: list[list[TopicPartition]] = []

    def __call__(self, _markers: WriteMarkers, partitions: Iterable[TopicPartition]) -> None:
        self.partitions.append(list(partitions))


def an_open_transaction(stage: Stage) -> MarkerWriter:
    stage.partition.append(transactional(PRODUCER, 0, b"value"))
    return MarkerWriter(stage.partitions, None, stage.clock)  # type: ignore[arg-type]


def control_batches(stage: Stage) -> int:
    return sum(each.is_control for each in batches_from(stage.partition.log, 0))


def test_a_marker_ends_the_transaction_and_is_reported_and_so_is_a_deleted_partition() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME))
        writer, reports = an_open_transaction(stage), Reports()
        assert stage.partition.log.last_stable_offset == 0
        writer.begin(markers(HERE, GONE), reports)
        await turns()
        assert reports.partitions == [[HERE, GONE]]
        assert stage.partition.log.last_stable_offset == 2

    run(scenario())


def test_a_marker_that_cannot_be_written_is_tried_again_and_then_only_that() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME))
        writer, reports = an_open_transaction(stage), Reports()
        stage.partition.take_role(an_image(TWO, epoch=1, replicas=(ME, TWO)))
        writer.begin(markers(HERE, GONE), reports)
        await turns()
        assert reports.partitions == [[GONE]]
        stage.partition.take_role(an_image(ME, epoch=2))
        await pass_time(RETRY_SECONDS)
        assert reports.partitions == [[GONE], [HERE]]
        assert control_batches(stage) == 1

    run(scenario())


def test_a_marker_is_reported_only_when_it_is_committed_and_written_only_once() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=(ME, TWO)))
        writer, reports = an_open_transaction(stage), Reports()
        writer.begin(markers(HERE), reports)
        await turns()
        await pass_time(COMMIT_SECONDS_MAX + 0.1)
        await pass_time(RETRY_SECONDS)
        await pass_time(RETRY_SECONDS)
        assert reports.partitions == [], "it can still be lost"
        stage.partition.fetched_by(TWO, Offset(2))
        await pass_time(RETRY_SECONDS)
        assert reports.partitions == [[HERE]]
        assert control_batches(stage) == 1

    run(scenario())


def test_a_writer_of_one_marker_is_told_when_it_is_not_committed_in_time() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=(ME, TWO)))
        writer = an_open_transaction(stage)
        writing = asyncio.ensure_future(writer.write(HERE, markers(HERE)))
        await turns()
        await pass_time(COMMIT_SECONDS_MAX + 0.1)
        with pytest.raises(TimedOut):
            await writing

    run(scenario())


def test_a_coordinator_that_was_replaced_gives_up() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME))
        writer, reports = an_open_transaction(stage), Reports()
        await writer.write(HERE, markers(HERE, coordinator_epoch=7))
        stage.partition.append(transactional(PRODUCER, 0, b"next", epoch=1))
        writer.begin(markers(HERE, epoch=2, coordinator_epoch=6), reports)
        await pass_time(10 * RETRY_SECONDS)
        assert reports.partitions == []
        assert control_batches(stage) == 1

    run(scenario())


def test_stopping_leaves_what_is_not_written() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME))
        writer, reports = an_open_transaction(stage), Reports()
        stage.partition.take_role(an_image(TWO, epoch=1, replicas=(ME, TWO)))
        writer.begin(markers(HERE), reports)
        await turns()
        writer.stop()
        stage.partition.take_role(an_image(ME, epoch=2))
        await pass_time(10 * RETRY_SECONDS)
        assert control_batches(stage) == 0

    run(scenario())
