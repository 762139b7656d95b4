"""A follower takes from its leader what is its leader's, and nothing else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ottla.broker.flusher import Flusher
from ottla.broker.follower_throttle import FollowerThrottle
from ottla.broker.partition import Services
from ottla.broker.replica_fetcher import BACKOFF_SECONDS, ReplicaFetcher
from ottla.cluster.image import ClusterImage
from ottla.errors import ErrorCode
from ottla.model.ids import Offset, TopicPartition
from ottla.settings.replication import ReplicationSettings
from unit.broker.leader import (
    SESSION_ID,
    Leader,
    a_leader,
    answer,
    data,
    forgotten,
    named,
    written,
)
from unit.broker.stage import ME, TOPIC_ID, TWO, Notes, Stage, an_image
from unit.broker.unthrottled import unthrottled
from unit.net.running import pass_time, run, turns
from unit.net.served import wait_until
from unit.storage.logs import append, batch, values

BOTH = (ME, TWO)


def a_follower(*, epoch: int = 5, **changes: Any) -> Stage:
    return Stage(an_image(TWO, epoch=epoch, replicas=BOTH), **changes)


def numbered(stage: Stage, index: int) -> Stage:
    stage.partition.id = TopicPartition("topic", index)
    return stage


@asynccontextmanager
async def following(
    *stages: Stage, throttle: FollowerThrottle | None = None
) -> AsyncIterator[tuple[Leader, ReplicaFetcher]]:
    """A leader, and a fetcher that follows it in the stages' partitions."""
    async with a_leader() as leader:
        fetcher = ReplicaFetcher(ME, TWO, leader.address, throttle or unthrottled())
        for stage in stages:
            fetcher.follow(stage.partition)
        try:
            yield leader, fetcher
        finally:
            await fetcher.stop()


def test_the_first_request_opens_a_session_and_names_every_partition() -> None:
    async def scenario() -> None:
        first, second = a_follower(), numbered(a_follower(), 1)
        append(second.partition.log, batch(b"a", b"b"), epoch=3)
        async with following(first, second) as (leader, _):
            request = await leader.asked(1)
            assert (request.session_id, request.session_epoch) == (0, 0)
            assert request.replica_state is not None
            assert request.replica_state.replica_id == ME
            assert [topic.topic_id for topic in request.topics] == [TOPIC_ID]
            asked = {
                index: (each.fetch_offset, each.last_fetched_epoch, each.current_leader_epoch)
                for index, each in named(request).items()
            }
            assert asked == {0: (0, -1, 5), 1: (2, 3, 5)}

    run(scenario())


def test_records_are_appended_where_the_leader_has_them_and_watermarks_follow() -> None:
    async def scenario() -> None:
        stage = a_follower()
        async with following(stage) as (leader, _):
            records = written(b"a", b"b", base_offset=0, epoch=4) + written(
                b"c", base_offset=2, epoch=5
            )
            leader.say(answer(data(records, high_watermark=2)))
            await leader.asked(2)
            log = stage.partition.log
            assert values(log) == {0: b"a", 1: b"b", 2: b"c"}
            assert log.high_watermark == 2
            assert [(each.epoch, each.start_offset) for each in log.epochs.entries] == [
                (4, 0),
                (5, 2),
            ]
            leader.say(answer(data(high_watermark=3, start_offset=1)))
            await leader.asked(3)
            assert (log.high_watermark, log.start_offset) == (3, 1)

    run(scenario())


def test_where_each_message_is_synced_the_leader_is_told_only_of_what_is_on_the_disk() -> None:
    async def scenario() -> None:
        with ThreadPoolExecutor(1) as executor:
            stage = a_follower(flush_messages=1)
            services = Services(
                stage.standing, Flusher(executor, Notes()), stage.wishes, stage.pleas
            )
            stage.partition._services = services
            disk_goes_on = threading.Event()
            executor.submit(disk_goes_on.wait, 9)
            async with following(stage) as (leader, _):
                leader.say(answer(data(written(b"a", base_offset=0, epoch=5))))
                log = stage.partition.log
                await wait_until(lambda: log.end_offset == 1)
                await turns()
                assert (len(leader.requests), log.recovery_point) == (1, 0)
                disk_goes_on.set()
                request = await leader.asked(2)
                assert named(request)[0].fetch_offset == log.recovery_point == 1

    run(scenario())


def test_a_log_that_lost_its_tail_when_it_was_opened_again_is_asked_for_anew() -> None:
    async def scenario() -> None:
        first, second = a_follower(), numbered(a_follower(), 1)
        append(first.partition.log, batch(b"a", b"b"), epoch=3)
        async with following(first, second) as (leader, _):
            leader.say(answer(data(), data(index=1)))
            request = await leader.asked(2)
            assert named(request) == {}
            log = first.partition.log
            log.truncate_to(Offset(0))
            first.partition.reopened(log)
            leader.say(answer())
            request = await leader.asked(3)
            assert [each.fetch_offset for each in named(request).values()] == [0]

    run(scenario())


def test_a_session_names_only_what_moved() -> None:
    async def scenario() -> None:
        first, second = a_follower(), numbered(a_follower(), 1)
        async with following(first, second) as (leader, _):
            leader.say(answer(data(), data(index=1)))
            request = await leader.asked(2)
            assert (request.session_id, request.session_epoch) == (SESSION_ID, 1)
            assert named(request) == {}
            leader.say(answer(data(written(b"a", base_offset=0, epoch=5), index=1)))
            request = await leader.asked(3)
            assert request.session_epoch == 2
            moved = named(request)
            assert list(moved) == [1]
            assert (moved[1].fetch_offset, moved[1].last_fetched_epoch) == (1, 5)

    run(scenario())


@pytest.mark.parametrize(
    "error", [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH]
)
def test_a_session_that_is_lost_is_begun_anew(error: ErrorCode) -> None:
    async def scenario() -> None:
        async with following(a_follower()) as (leader, _):
            leader.say(answer(data()), answer(error=error, session=0))
            request = await leader.asked(3)
            assert (request.session_id, request.session_epoch) == (0, 0)
            assert list(named(request)) == [0]
            assert leader.connections == 1

    run(scenario())


def test_a_leader_without_a_free_session_is_asked_for_everything_each_time() -> None:
    async def scenario() -> None:
        async with following(a_follower()) as (leader, _):
            leader.say(answer(data(), session=0))
            request = await leader.asked(2)
            assert (request.session_id, request.session_epoch) == (0, 0)
            assert list(named(request)) == [0]

    run(scenario())


def test_a_leader_that_fails_altogether_is_asked_again_only_after_a_while() -> None:
    async def scenario() -> None:
        async with following(a_follower()) as (leader, _):
            leader.say(*[answer(error=ErrorCode.UNKNOWN_SERVER_ERROR, session=0)] * 100)
            begun = asyncio.get_running_loop().time()
            await leader.asked(1)
            await turns(200)
            passed = asyncio.get_running_loop().time() - begun
            assert len(leader.requests) <= 1 + passed // BACKOFF_SECONDS
            await pass_time(BACKOFF_SECONDS)
            await leader.asked(2)

    run(scenario())


def test_a_connection_that_ends_is_made_anew_with_a_new_session() -> None:
    async def scenario() -> None:
        async with following(a_follower()) as (leader, _):
            leader.say(answer(data()), None)
            await leader.asked(2)
            await turns(100)
            while leader.connections < 2:
                await pass_time(BACKOFF_SECONDS)
            request = await leader.asked(3)
            assert (request.session_id, request.session_epoch) == (0, 0)
            assert list(named(request)) == [0]

    run(scenario())


def test_where_histories_part_the_log_is_cut_and_nothing_is_appended() -> None:
    async def scenario() -> None:
        stage = a_follower()
        log = stage.partition.log
        append(log, batch(b"a", b"b"), epoch=2)
        append(log, batch(b"mine"), batch(b"mine too"), epoch=4)
        async with following(stage) as (leader, _):
            theirs = written(b"c", base_offset=4, epoch=5)
            leader.say(answer(data(theirs, diverging=(2, 3), high_watermark=4)))
            request = await leader.asked(2)
            assert values(log) == {0: b"a", 1: b"b"}
            again = named(request)[0]
            assert (again.fetch_offset, again.last_fetched_epoch) == (2, 2)

    run(scenario())


def test_what_was_cut_off_is_gone_for_good_before_anything_takes_its_place() -> None:
    async def scenario() -> None:
        with ThreadPoolExecutor(1) as executor:
            stage = a_follower()
            stage.partition._services = Services(
                stage.standing, Flusher(executor, Notes()), stage.wishes, stage.pleas
            )
            log, disk_goes_on = stage.partition.log, threading.Event()
            append(log, batch(b"a"), batch(b"mine"), epoch=2)
            async with following(stage) as (leader, _):
                await leader.asked(1)
                executor.submit(disk_goes_on.wait, 9)
                leader.say(answer(data(diverging=(2, 1))))
                await wait_until(lambda: log.end_offset == 1)
                await turns()
                assert (len(leader.requests), log.flusher.is_cut) == (1, True)
                disk_goes_on.set()
                await leader.asked(2)
                stage.world.disk.lose_power(lambda _: 0)
                assert values(stage.world.open()) == {0: b"a"}

    run(scenario())


def test_a_follower_that_has_less_of_an_epoch_than_the_leader_keeps_all_of_it() -> None:
    async def scenario() -> None:
        stage = a_follower()
        log = stage.partition.log
        append(log, batch(b"a", b"b"), epoch=2)
        append(log, batch(b"mine"), epoch=4)
        async with following(stage) as (leader, _):
            leader.say(answer(data(diverging=(3, 100))))
            request = await leader.asked(2)
            assert values(log) == {0: b"a", 1: b"b"}
            assert named(request)[0].last_fetched_epoch == 2

    run(scenario())


def test_an_epoch_in_which_nothing_was_written_can_part_histories_too() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, epoch=2, replicas=BOTH))
        log = stage.partition.log
        append(log, batch(b"a", b"b"), epoch=2)
        stage.partition.take_role(an_image(ME, epoch=4, replicas=BOTH))
        stage.partition.take_role(an_image(TWO, epoch=5, replicas=BOTH))
        async with following(stage) as (leader, _):
            request = await leader.asked(1)
            assert named(request)[0].last_fetched_epoch == 4
            leader.say(answer(data(diverging=(2, 2))))
            request = await leader.asked(2)
            assert named(request)[0].last_fetched_epoch == 2, "or it would be told so for ever"
            leader.say(answer(data(written(b"c", base_offset=2, epoch=5))))
            await leader.asked(3)
            assert values(log) == {0: b"a", 1: b"b", 2: b"c"}

    run(scenario())


def test_batches_of_a_later_epoch_than_was_asked_in_are_left() -> None:
    async def scenario() -> None:
        stage = a_follower(epoch=5)
        async with following(stage) as (leader, _):
            records = written(b"a", base_offset=0, epoch=5) + written(
                b"of a later leader", base_offset=1, epoch=6
            )
            leader.say(answer(data(records, high_watermark=2)))
            await leader.asked(2)
            assert values(stage.partition.log) == {0: b"a"}
            assert stage.high_watermark == 1

    run(scenario())


def test_a_batch_cut_short_at_the_end_of_an_answer_is_left() -> None:
    async def scenario() -> None:
        stage = a_follower()
        async with following(stage) as (leader, _):
            whole = written(b"a", base_offset=0, epoch=5)
            torn = written(b"b", base_offset=1, epoch=5)[:-1]
            leader.say(answer(data(whole + torn)))
            request = await leader.asked(2)
            assert named(request)[0].fetch_offset == 1

    run(scenario())


def test_damaged_records_are_not_appended_and_are_asked_for_again() -> None:
    async def scenario() -> None:
        stage = a_follower()
        async with following(stage) as (leader, _):
            damaged = bytearray(written(b"abcdef", base_offset=0, epoch=5))
            damaged[-3] ^= 0xFF
            leader.say(answer(data(bytes(damaged))))
            await leader.asked(1)
            while len(leader.requests) < 2:
                await pass_time(BACKOFF_SECONDS)
            assert stage.partition.log.end_offset == 0
            leader.say(answer())
            leader.say(answer(data(written(b"abcdef", base_offset=0, epoch=5))))
            await wait_until(lambda: stage.partition.log.end_offset == 1)

    run(scenario())


def test_an_answer_from_before_a_new_epoch_is_dropped() -> None:
    async def scenario() -> None:
        stage = a_follower(epoch=5)
        async with following(stage) as (leader, fetcher):
            await leader.asked(1)
            stage.partition.take_role(an_image(TWO, epoch=6, replicas=BOTH))
            fetcher.follow(stage.partition)
            leader.say(answer(data(written(b"a", base_offset=0, epoch=5), high_watermark=1)))
            request = await leader.asked(2)
            assert stage.partition.log.end_offset == 0
            assert named(request)[0].current_leader_epoch == 6

    run(scenario())


def test_an_answer_for_a_partition_this_broker_leads_by_now_is_dropped() -> None:
    async def scenario() -> None:
        stage = a_follower(epoch=5)
        async with following(stage) as (leader, fetcher):
            await leader.asked(1)
            stage.partition.take_role(an_image(ME, epoch=6, replicas=BOTH))
            fetcher.leave(stage.partition)
            leader.say(answer(data(written(b"a", base_offset=0, epoch=5), high_watermark=1)))
            await turns(50)
            assert stage.partition.log.end_offset == 0

    run(scenario())


def test_a_partition_that_is_left_is_forgotten_in_the_session() -> None:
    async def scenario() -> None:
        first, second = a_follower(), numbered(a_follower(), 1)
        async with following(first, second) as (leader, fetcher):
            await leader.asked(1)
            fetcher.leave(second.partition)
            leader.say(answer(data(), data(written(b"a", base_offset=0, epoch=5), index=1)))
            assert forgotten(await leader.asked(2)) == [1]
            assert second.partition.log.end_offset == 0

    run(scenario())


def test_a_partition_that_is_left_right_after_news_of_it_is_forgotten_too() -> None:
    async def scenario() -> None:
        first, second = a_follower(), numbered(a_follower(), 1)
        async with following(first, second) as (leader, fetcher):
            await leader.asked(1)
            fetcher.follow(second.partition)
            fetcher.leave(second.partition)
            leader.say(answer(data(), data(index=1)))
            assert forgotten(await leader.asked(2)) == [1]

    run(scenario())


def test_a_fenced_follower_waits_for_news_and_goes_on_with_them() -> None:
    async def scenario() -> None:
        stage, other = a_follower(epoch=5), numbered(a_follower(), 1)
        async with following(stage, other) as (leader, fetcher):
            leader.say(answer(data(error=ErrorCode.FENCED_LEADER_EPOCH), data(index=1)))
            assert forgotten(await leader.asked(2)) == [0]
            await pass_time(10 * BACKOFF_SECONDS)
            leader.say(answer())
            assert named(await leader.asked(3)) == {}
            stage.partition.take_role(an_image(TWO, epoch=6, replicas=BOTH))
            fetcher.follow(stage.partition)
            leader.say(answer())
            assert named(await leader.asked(4))[0].current_leader_epoch == 6

    run(scenario())


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
def test_a_leader_that_has_not_heard_of_its_role_yet_is_asked_again_after_a_while(
    error: ErrorCode,
) -> None:
    async def scenario() -> None:
        stage, other = a_follower(), numbered(a_follower(), 1)
        async with following(stage, other) as (leader, _):
            leader.say(answer(data(error=error), data(index=1)))
            request = await leader.asked(2)
            assert named(request) == {}
            assert forgotten(request) == [0], "others must not be answered early because of it"
            await pass_time(BACKOFF_SECONDS)
            leader.say(answer())
            assert list(named(await leader.asked(3))) == [0]
            leader.say(answer(data(written(b"a", base_offset=0, epoch=5))))
            await wait_until(lambda: stage.partition.log.end_offset == 1)

    run(scenario())


def test_a_follower_whose_records_are_all_deleted_at_the_leader_begins_where_that_begins() -> None:
    async def scenario() -> None:
        stage = a_follower()
        append(stage.partition.log, batch(b"a", b"b"), epoch=2)
        async with following(stage) as (leader, _):
            gone = data(error=ErrorCode.OFFSET_OUT_OF_RANGE, start_offset=50)
            leader.say(answer(gone))
            request = await leader.asked(2)
            assert named(request)[0].fetch_offset == 50
            log = stage.partition.log
            assert (log.start_offset, log.end_offset, log.high_watermark) == (50, 50, 50)
            leader.say(answer(data(written(b"c", base_offset=50, epoch=5), start_offset=50)))
            await leader.asked(3)
            assert values(log) == {50: b"c"}

    run(scenario())


def test_a_full_disk_does_not_end_replication_for_good() -> None:
    async def scenario() -> None:
        stage = a_follower()
        async with following(stage) as (leader, _):
            records = answer(data(written(b"a", base_offset=0, epoch=5)))
            stage.world.disk.space_bytes = 0
            leader.say(records)
            await leader.asked(1)
            await turns(50)
            stage.world.disk.space_bytes = None
            while len(leader.requests) < 2:
                await pass_time(BACKOFF_SECONDS)
            leader.say(answer(), records, records)
            await wait_until(lambda: stage.partition.log.end_offset == 1)

    run(scenario())


def test_nothing_is_asked_for_what_cannot_be_written_until_it_can() -> None:
    async def scenario() -> None:
        stage = a_follower()
        stage.partition.is_ailing = True
        async with following(stage) as (leader, _):
            for _ in range(5):
                await pass_time(BACKOFF_SECONDS)
            assert leader.requests == []
            stage.partition.is_ailing = False
            await pass_time(BACKOFF_SECONDS)
            await leader.asked(1)

    run(scenario())


def a_throttled_follower() -> tuple[Stage, FollowerThrottle]:
    """Ten bytes a second for its only replica, which is not in sync."""
    stage = Stage(
        an_image(TWO, epoch=5, replicas=BOTH), follower_replication_throttled_replicas=("0:1",)
    )
    settings = ReplicationSettings(follower_replication_throttled_rate=10)
    return stage, FollowerThrottle(ME, lambda: settings, ClusterImage)


def test_a_throttled_replica_asks_for_no_more_until_its_rate_allows_it() -> None:
    async def scenario() -> None:
        stage, throttle = a_throttled_follower()
        async with following(stage, throttle=throttle) as (leader, _):
            records = written(b"a", base_offset=0, epoch=5)
            leader.say(answer(data(records)))
            await wait_until(lambda: stage.partition.log.end_offset == 1)
            for _ in range(3):
                await pass_time(2 * BACKOFF_SECONDS)
            assert len(leader.requests) == 1
            stage.clock.ms += 100 * len(records)
            await pass_time(2 * BACKOFF_SECONDS)
            assert named(await leader.asked(2))[0].fetch_offset == 1

    run(scenario())
