"""Produce answers each partition when, and only if, its records are as safe as was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

import pytest

from ottla.broker.handlers.produce import ACKS_ALL, ACKS_LEADER, ACKS_NONE, ProduceHandler
from ottla.broker.partition import Partition
from ottla.broker.partitions import Partitions
from ottla.broker.request import RequestContext, settled
from ottla.errors import ErrorCode, ProtocolError, StorageFailed
from ottla.model.ids import Offset, TopicPartition
from ottla.net.server_connection import Peer
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from unit.broker.stage import ME, THREE, TOPIC_ID, TWO, Stage, an_image
from unit.net.running import pass_time, run, turns
from unit.storage.logs import batch

BOTH = (ME, TWO)
CONTEXT = RequestContext(12, "test", Peer("here", 1))


class Writer:
    """Sends produce requests to a handler over some partitions, numbered in their order."""

    def __init__(self, *stages: Stage) -> None:
        partitions = Partitions()
        for index, stage in enumerate(stages):
            stage.partition.id = TopicPartition("topic", index)
            partitions.add(stage.partition)
        self._handler = ProduceHandler(partitions, None)  # type: ignore[arg-type]
        self._indexes = range(len(stages))

    def send(
        self, acks: int = ACKS_ALL, *, timeout_ms: int = 5_000, indexes: Iterable[int] | None = None
    ) -> asyncio.Task[ProduceResponse | None]:
        data = [
            PartitionProduceData(index, batch(b"value"))
            for index in (self._indexes if indexes is None else indexes)
        ]
        request = ProduceRequest(
            None, acks, timeout_ms, [TopicProduceData("topic", TOPIC_ID, data)]
        )
        answer: Coroutine[Any, Any, Any] = settled(self._handler.handle(request, CONTEXT))
        return asyncio.ensure_future(answer)


async def answers_of(task: asyncio.Task[ProduceResponse | None]) -> list[PartitionProduceResponse]:
    await turns()
    assert task.done(), "it still waits"
    response = task.result()
    assert response is not None
    return response.responses[0].partition_responses


async def codes_of(task: asyncio.Task[ProduceResponse | None]) -> list[int]:
    return [answer.error_code for answer in await answers_of(task)]


def deposed(partition: Partition) -> None:
    partition.take_role(an_image(TWO, epoch=1, replicas=BOTH))


def test_acks_all_waits_for_the_high_watermark() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=BOTH))
        task = Writer(stage).send(ACKS_ALL)
        await turns()
        assert not task.done()
        stage.partition.fetched_by(TWO, Offset(1))
        (answer,) = await answers_of(task)
        assert (answer.error_code, answer.base_offset) == (0, 0)

    run(scenario())


def test_acks_of_the_leader_do_not_wait() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=BOTH))
        assert await codes_of(Writer(stage).send(ACKS_LEADER)) == [0]
        assert stage.high_watermark == 0

    run(scenario())


def test_too_few_in_sync_refuse_acks_all_before_anything_is_written() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=BOTH, isr=(ME,)), min_insync_replicas=2)
        writer = Writer(stage)
        assert await codes_of(writer.send(ACKS_ALL)) == [ErrorCode.NOT_ENOUGH_REPLICAS]
        assert stage.partition.log.end_offset == 0
        assert await codes_of(writer.send(ACKS_LEADER)) == [0]

    run(scenario())


def test_a_set_that_shrank_below_the_minimum_during_the_wait_is_told() -> None:
    async def scenario() -> None:
        replicas = (ME, TWO, THREE)
        stage = Stage(an_image(ME, replicas=replicas), min_insync_replicas=2)
        task = Writer(stage).send(ACKS_ALL)
        await turns()
        stage.partition.fetched_by(TWO, Offset(1))
        stage.partition.fetched_by(THREE, Offset(1))
        alone = an_image(ME, replicas=replicas, isr=(ME,), partition_epoch=1)
        stage.partition.take_role(alone)
        assert await codes_of(task) == [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]

    run(scenario())


def test_a_partition_that_is_late_says_so_in_its_own_answer() -> None:
    async def scenario() -> None:
        slow, fast = Stage(an_image(ME, replicas=BOTH)), Stage(an_image(ME))
        task = Writer(slow, fast).send(ACKS_ALL, timeout_ms=5_000)
        await turns()
        await pass_time(4)
        assert not task.done()
        await pass_time(2)
        assert await codes_of(task) == [ErrorCode.REQUEST_TIMED_OUT, 0]

    run(scenario())


def test_records_of_another_leader_at_the_same_offsets_are_not_taken_for_those_sent() -> None:
    async def scenario() -> None:
        first, second = (Stage(an_image(ME, replicas=BOTH)) for _ in range(2))
        task = Writer(first, second).send(ACKS_ALL)
        await turns()
        # While the first partition is waited for, the second is lost to another leader, who
        # commits other records where ours were.
        deposed(second.partition)
        second.partition.log.truncate_to(0)
        theirs = batch(b"theirs")
        second.partition.log.append(theirs, leader_epoch=1)
        second.partition.follow_watermarks(Offset(1), Offset(0))
        first.partition.fetched_by(TWO, Offset(1))
        assert await codes_of(task) == [0, ErrorCode.NOT_LEADER_OR_FOLLOWER]

    run(scenario())


def test_a_disk_that_fails_while_another_partition_is_waited_for_is_told() -> None:
    async def scenario() -> None:
        first = Stage(an_image(ME, replicas=BOTH))
        second = Stage(an_image(ME), flush_messages=1)
        task = Writer(first, second).send(ACKS_ALL)
        await turns()
        second.partition.fail(StorageFailed("the disk could not be synced"))
        first.partition.fetched_by(TWO, Offset(1))
        assert await codes_of(task) == [0, ErrorCode.KAFKA_STORAGE_ERROR]

    run(scenario())


def test_a_client_that_goes_away_leaves_no_wait_behind() -> None:
    async def scenario() -> None:
        stages = [Stage(an_image(ME, replicas=BOTH)) for _ in range(2)]
        task = Writer(*stages).send(ACKS_ALL)
        await turns()
        task.cancel()
        await turns()
        assert task.cancelled()
        for stage in stages:
            stage.partition.fail(StorageFailed("nobody listens"))

    run(scenario())


def test_each_partition_gets_its_own_error() -> None:
    async def scenario() -> None:
        led, followed = Stage(an_image(ME)), Stage(an_image(TWO, replicas=BOTH))
        task = Writer(led, followed).send(ACKS_ALL, indexes=(0, 1, 2))
        assert await codes_of(task) == [
            0,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]

    run(scenario())


@pytest.mark.parametrize("acks", [-2, 2, 100])
def test_acks_that_do_not_exist_are_refused(acks: int) -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME))
        assert await codes_of(Writer(stage).send(acks)) == [ErrorCode.INVALID_REQUIRED_ACKS]
        assert stage.partition.log.end_offset == 0

    run(scenario())


def test_without_acks_success_is_silent_and_failure_ends_the_connection() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME))
        writer = Writer(stage)
        assert await writer.send(ACKS_NONE) is None
        assert stage.partition.log.end_offset == 1
        stage.partition.close()
        with pytest.raises(ProtocolError):
            await writer.send(ACKS_NONE)

    run(scenario())
