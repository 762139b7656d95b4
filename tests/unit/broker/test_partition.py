"""One partition: who may write, what is committed, and who is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ottla.broker.commit_waits import KEPT_MIN
from ottla.broker.watch import DataWatch
from ottla.errors import ErrorCode, OttlaError, RequestFailed, StorageFailed, TimedOut
from ottla.model.ids import Offset
from unit.broker.stage import LAG_MS, ME, NOBODY, THREE, TWO, Stage, an_image
from unit.net.running import pass_time, run, turns
from unit.storage.logs import append, batch, flush, values

ALL = (ME, TWO, THREE)


def code_of(call: Callable[[], object]) -> ErrorCode:
    with pytest.raises(OttlaError) as caught:
        call()
    return caught.value.code


def a_watch(*, bytes_min: int = 1) -> DataWatch:
    return DataWatch(asyncio.get_running_loop(), bytes_min)


async def is_woken(watch: DataWatch) -> bool:
    """Whether it has been woken by now."""
    await turns()
    return watch._future.done()


# --- roles ---


def test_only_a_leader_takes_records() -> None:
    stage = Stage()
    assert code_of(lambda: stage.append(b"a")) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    stage.partition.take_role(an_image(TWO, epoch=1, replicas=ALL))
    assert code_of(lambda: stage.append(b"a")) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    stage.partition.take_role(an_image(ME, epoch=2, replicas=ALL))
    assert stage.append(b"a") == 1
    assert stage.partition.leader_epoch == 2


def test_news_of_an_older_epoch_change_nothing() -> None:
    stage = Stage(an_image(ME, epoch=5, replicas=ALL))
    in_sync = stage.partition.in_sync
    assert not stage.partition.take_role(an_image(TWO, epoch=4, replicas=ALL))
    assert stage.partition.is_leader
    assert stage.partition.leader == ME
    assert stage.partition.leader_epoch == 5
    assert stage.partition.in_sync is in_sync


def test_the_same_epoch_with_another_set_is_no_new_role() -> None:
    stage = Stage(an_image(ME, epoch=5, replicas=ALL, partition_epoch=7))
    in_sync = stage.partition.in_sync
    assert in_sync is not None
    changed = an_image(ME, epoch=5, replicas=ALL, isr=(ME, TWO), partition_epoch=8)
    assert not stage.partition.take_role(changed)
    assert stage.partition.in_sync is in_sync
    assert in_sync.members == {ME, TWO}


def test_an_epoch_is_noted_before_anything_is_written_in_it() -> None:
    stage = Stage(an_image(ME, epoch=3))
    stage.append(b"a", b"b")
    stage.partition.take_role(an_image(ME, epoch=9))
    entries = [(entry.epoch, entry.start_offset) for entry in stage.partition.log.epochs.entries]
    assert entries == [(3, 0), (9, 2)]


def test_taking_the_lead_writes_no_file() -> None:
    stage = Stage(an_image(ME, epoch=3))
    stage.append(b"a")
    stage.world.disk.space_bytes = 0
    stage.partition.take_role(an_image(TWO, epoch=4, replicas=ALL))
    stage.partition.take_role(an_image(ME, epoch=5, replicas=ALL))
    with pytest.raises(StorageFailed):
        stage.append(b"b")
    stage.world.disk.space_bytes = None
    assert stage.append(b"b") == 2


def test_who_leads_what_it_has_just_cut_writes_nothing_over_what_might_come_back() -> None:
    stage = Stage(an_image(TWO, epoch=3, replicas=ALL))
    log = stage.partition.log
    append(log, batch(b"a"), batch(b"old"), epoch=3)
    flush(log)
    log.truncate_to(1)
    assert stage.partition.is_unsynced
    stage.partition.take_role(an_image(ME, epoch=4, replicas=ALL))
    assert not stage.partition.is_unsynced
    stage.world.disk.lose_power(lambda _: 0)
    assert values(stage.world.open()) == {0: b"a"}


def test_a_partition_without_a_leader_knows_of_none() -> None:
    stage = Stage(an_image(ME, epoch=1, replicas=ALL))
    stage.partition.take_role(an_image(NOBODY, epoch=2, replicas=ALL))
    assert stage.partition.leader is None
    assert not stage.partition.is_leader


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (-1, None),
        (5, None),
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_client_that_knows_another_epoch_is_refused(asked: int, code: ErrorCode | None) -> None:
    partition = Stage(an_image(ME, epoch=5)).partition
    if code is None:
        partition.check_leader_epoch(asked)
    else:
        assert code_of(lambda: partition.check_leader_epoch(asked)) is code


def test_a_leader_whose_session_has_ended_takes_and_commits_nothing() -> None:
    stage = Stage(an_image(ME))
    stage.standing.is_registered = False
    assert code_of(lambda: stage.append(b"a")) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (
        code_of(lambda: stage.partition.check_leader_epoch(-1)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    )
    stage.standing.is_registered = True
    assert stage.append(b"a") == 1


def test_a_fenced_leader_does_not_acknowledge_what_its_followers_fetched() -> None:
    stage = Stage(an_image(ME, replicas=(ME, TWO)))
    stage.append(b"a")
    stage.standing.is_registered = False
    stage.partition.fetched_by(TWO, Offset(1))
    assert stage.high_watermark == 0
    stage.standing.is_registered = True
    stage.partition.fetched_by(TWO, Offset(1))
    assert stage.high_watermark == 1


def in_doubt(stage: Stage) -> None:
    stage.session.deadline_ms = stage.clock.monotonic_ms()


def test_a_leader_in_doubt_commits_what_its_followers_fetch() -> None:
    stage = Stage(an_image(ME, replicas=(ME, TWO)))
    in_doubt(stage)
    stage.append(b"a")
    assert stage.high_watermark == 0
    stage.partition.fetched_by(TWO, Offset(1))
    assert stage.high_watermark == 1


def test_a_leader_in_doubt_that_is_alone_in_sync_takes_and_commits_nothing() -> None:
    stage = Stage(an_image(ME, replicas=(ME, TWO), isr=(ME,)), flush_messages=1)
    stage.append(b"a")
    in_doubt(stage)
    stage.flushes.run()
    assert stage.high_watermark == 0
    assert code_of(lambda: stage.append(b"b")) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_leader_in_doubt_acknowledges_nothing_before_a_follower_has_it() -> None:
    stage = Stage(an_image(ME, replicas=(ME, TWO)))
    check = stage.partition.check_leads_for_certain
    check()
    in_doubt(stage)
    assert code_of(check) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not stage.partition.leads_for_certain


def test_the_only_replica_goes_on_in_doubt_since_nobody_else_can_lead() -> None:
    stage = Stage(an_image(ME))
    in_doubt(stage)
    stage.partition.check_leads_for_certain()
    assert stage.append(b"a") == 1
    assert stage.high_watermark == 1


def test_a_closed_partition_takes_nothing() -> None:
    stage = Stage(an_image(ME))
    stage.partition.close()
    assert code_of(lambda: stage.append(b"a")) is ErrorCode.NOT_LEADER_OR_FOLLOWER


# --- committing ---


def test_a_leader_alone_commits_what_it_writes() -> None:
    stage = Stage(an_image(ME))
    end_offset = stage.append(b"a", b"b")
    assert stage.partition.is_committed(Offset(end_offset))


def test_the_high_watermark_waits_for_every_member_of_the_set() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=ALL))
        end_offset = stage.append(b"a", b"b")
        waiting = stage.committed(end_offset)
        stage.partition.fetched_by(TWO, Offset(2))
        await turns()
        assert not waiting.done()
        stage.partition.fetched_by(THREE, Offset(1))
        await turns()
        assert stage.high_watermark == 1
        assert not waiting.done()
        stage.partition.fetched_by(THREE, Offset(2))
        await waiting
        assert stage.high_watermark == 2

    run(scenario())


def test_waits_end_in_order_as_far_as_is_committed() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=(ME, TWO)))
        waits = [stage.committed(stage.append(b"x")) for _ in range(3)]
        await turns()
        stage.partition.fetched_by(TWO, Offset(2))
        await turns()
        assert [wait.done() for wait in waits] == [True, True, False]
        stage.partition.fetched_by(TWO, Offset(3))
        await waits[2]

    run(scenario())


def test_a_wait_for_more_does_not_hold_up_one_for_less() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=(ME, TWO)))
        stage.append(b"x", b"y", b"z")
        more, less = stage.committed(3), stage.committed(1)
        await turns()
        stage.partition.fetched_by(TWO, Offset(1))
        await turns()
        assert less.done()
        assert not more.done()
        more.cancel()

    run(scenario())


def test_a_wait_ends_at_its_deadline() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=(ME, TWO)))
        waiting = stage.committed(stage.append(b"a"), seconds=10)
        await pass_time(9)
        assert not waiting.done()
        await pass_time(2)
        with pytest.raises(TimedOut):
            await waiting
        stage.partition.fetched_by(TWO, Offset(1))
        assert stage.high_watermark == 1, "it may still be committed later"

    run(scenario())


def test_a_leader_that_is_deposed_tells_those_who_wait() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=(ME, TWO)))
        waiting = stage.committed(stage.append(b"a"))
        await turns()
        stage.partition.take_role(an_image(TWO, epoch=1, replicas=(ME, TWO)))
        with pytest.raises(RequestFailed) as caught:
            await waiting
        assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(scenario())


def test_a_wait_that_begins_after_the_deposition_is_told_so_too() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=(ME, TWO)))
        end_offset = stage.append(b"a")
        stage.partition.take_role(an_image(TWO, epoch=1, replicas=(ME, TWO)))
        waiting = stage.committed(end_offset)
        await turns()
        assert waiting.done()
        assert isinstance(waiting.exception(), RequestFailed)

    run(scenario())


def test_a_dead_member_holds_back_until_its_leaving_is_confirmed() -> None:
    stage = Stage(an_image(ME, replicas=ALL, partition_epoch=3))
    stage.append(b"a")
    stage.partition.fetched_by(TWO, Offset(1))
    stage.clock.ms += LAG_MS + 1
    stage.partition.fetched_by(TWO, Offset(1))
    stage.partition.drop_laggards()
    assert stage.wishes.asked == [{ME, TWO}]
    assert stage.high_watermark == 0, "it may be in the set for all we know"
    stage.partition.drop_laggards()
    assert len(stage.wishes.asked) == 1, "one wish at a time"
    stage.partition.take_role(an_image(ME, replicas=ALL, isr=(ME, TWO), partition_epoch=4))
    assert stage.high_watermark == 1


def test_a_follower_that_has_caught_up_is_wished_into_the_set() -> None:
    stage = Stage(an_image(ME, replicas=ALL, isr=(ME, TWO)))
    stage.append(b"a", b"b")
    stage.partition.fetched_by(TWO, Offset(2))
    assert stage.high_watermark == 2
    stage.partition.fetched_by(THREE, Offset(1))
    assert stage.wishes.asked == []
    stage.partition.fetched_by(THREE, Offset(2))
    assert stage.wishes.asked == [{ME, TWO, THREE}]


def test_nothing_is_committed_while_too_few_are_in_sync() -> None:
    stage = Stage(an_image(ME, replicas=ALL, isr=(ME,)), min_insync_replicas=2)
    stage.append(b"a")
    assert stage.high_watermark == 0
    assert code_of(stage.partition.check_in_sync) is ErrorCode.NOT_ENOUGH_REPLICAS
    stage.partition.fetched_by(TWO, Offset(1))
    stage.partition.take_role(an_image(ME, replicas=ALL, isr=(ME, TWO), partition_epoch=1))
    stage.partition.check_in_sync()
    assert stage.high_watermark == 1


def test_the_only_one_in_sync_commits_what_it_writes_where_that_is_enough() -> None:
    stage = Stage(an_image(ME, replicas=ALL), min_insync_replicas=1)
    stage.append(b"a")
    assert stage.high_watermark == 0
    stage.partition.take_role(an_image(ME, replicas=ALL, isr=(ME,), partition_epoch=1))
    assert stage.high_watermark == 1
    stage.append(b"b")
    assert stage.high_watermark == 2, "no follower may ever ask for it"


def test_no_more_replicas_are_asked_for_than_the_partition_has() -> None:
    stage = Stage(an_image(ME), min_insync_replicas=2)
    stage.partition.check_in_sync()
    stage.append(b"a")
    assert stage.high_watermark == 1


def test_the_high_watermark_of_a_leader_never_goes_back() -> None:
    stage = Stage(an_image(ME, replicas=(ME, TWO)))
    stage.append(b"a", b"b")
    stage.partition.fetched_by(TWO, Offset(2))
    stage.partition.fetched_by(TWO, Offset(0))
    assert stage.high_watermark == 2


def test_a_follower_takes_over_the_watermarks_as_far_as_it_has_the_records() -> None:
    stage = Stage(an_image(ME))
    stage.append(b"a", b"b")
    stage.partition.take_role(an_image(TWO, epoch=1, replicas=(ME, TWO)))
    stage.partition.follow_watermarks(Offset(100), Offset(1))
    assert stage.high_watermark == 2
    assert stage.partition.log.start_offset == 1
    assert values(stage.partition.log) == {1: b"b"}


# --- syncing to the disk ---


def test_where_every_message_is_flushed_it_is_committed_by_the_flush() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME), flush_messages=1)
        end_offset = stage.append(b"a")
        assert stage.high_watermark == 0
        waiting = stage.committed(end_offset)
        await turns()
        stage.flushes.run()
        await waiting
        assert stage.high_watermark == 1

    run(scenario())


def test_a_flush_alone_commits_nothing_that_followers_lack() -> None:
    stage = Stage(an_image(ME, replicas=(ME, TWO)), flush_messages=1)
    stage.append(b"a")
    stage.partition.fetched_by(TWO, Offset(1))
    assert stage.high_watermark == 0, "the leader has not got it on disk"
    stage.flushes.run()
    assert stage.high_watermark == 1


def test_followers_need_not_wait_for_the_leaders_flush() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=(ME, TWO)), flush_messages=1)
        watch = a_watch()
        stage.partition.watch(watch)
        stage.append(b"a")
        assert await is_woken(watch)

    run(scenario())


def test_a_flush_is_asked_for_every_so_many_messages() -> None:
    stage = Stage(an_image(ME), flush_messages=3)
    stage.append(b"a", b"b")
    assert stage.flushes.due == []
    stage.append(b"c")
    assert stage.flushes.due == [stage.partition]
    assert stage.high_watermark == 3


def test_a_log_that_was_opened_again_goes_on_from_what_it_still_has() -> None:
    stage = Stage(an_image(ME), flush_messages=1)
    stage.append(b"a")
    stage.flushes.run()
    stage.append(b"b")
    stage.world.recovery_point = stage.partition.log.recovery_point
    stage.partition.reopened(stage.world.open())
    stage.append(b"c")
    stage.flushes.run()
    assert stage.high_watermark == stage.partition.log.end_offset


# --- watching ---


def test_a_reader_is_woken_by_enough_committed_bytes() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME))
        size_bytes = len(batch(b"a"))
        watch = a_watch(bytes_min=2 * size_bytes)
        stage.partition.watch(watch)
        stage.append(b"a")
        assert not await is_woken(watch)
        stage.append(b"b")
        assert await is_woken(watch)

    run(scenario())


def test_a_reader_that_left_is_not_told() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME))
        watch = a_watch()
        stage.partition.watch(watch)
        stage.partition.unwatch(watch)
        stage.append(b"a")
        assert not await is_woken(watch)

    run(scenario())


@pytest.mark.parametrize("event", ["deposed", "elected", "closed", "failed"])
def test_readers_look_again_when_the_role_changes(event: str) -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, epoch=1, replicas=ALL))
        watch = a_watch(bytes_min=1_000_000)
        stage.partition.watch(watch)
        if event == "deposed":
            stage.partition.take_role(an_image(TWO, epoch=2, replicas=ALL))
        elif event == "elected":
            stage.partition.take_role(an_image(ME, epoch=2, replicas=ALL))
        elif event == "closed":
            stage.partition.close()
        else:
            stage.partition.fail(StorageFailed("the disk"))
        assert await is_woken(watch)

    run(scenario())


def test_a_watch_ends_by_itself_when_its_time_is_over() -> None:
    async def scenario() -> None:
        watch = a_watch()
        waiting = asyncio.ensure_future(watch.wait(5))
        await pass_time(4)
        assert not waiting.done()
        await pass_time(2)
        await waiting

    run(scenario())


def test_waits_that_ended_are_not_kept_while_nothing_is_committed() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=(ME, TWO)))
        end = stage.append(b"a")
        kept = stage.committed(end, seconds=1e6)
        for _ in range(10 * KEPT_MIN):
            stage.committed(end).cancel()
        assert len(stage.partition._waits.queue) <= 2 * KEPT_MIN
        stage.partition.fetched_by(TWO, Offset(end))
        assert kept.done()

    run(scenario())


def test_what_was_held_back_in_doubt_is_committed_when_the_doubt_is_over() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=(ME, TWO)))
        end = stage.append(b"a")
        waiting = stage.committed(end)
        stage.standing.is_registered = False
        stage.partition.fetched_by(TWO, Offset(end))
        assert not waiting.done()
        stage.standing.is_registered = True
        stage.partition.stood()
        assert waiting.done()

    run(scenario())
