"""What a picture says becomes true on this broker, one picture after another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ottla.broker.cluster_follower import RETRY_SECONDS, Difference, difference
from ottla.cluster.image import ClusterImage
from unit.broker.cluster import Member, a_partition, a_picture, a_topic, expected
from unit.net.running import pass_time, run, turns
from unit.storage.logs import batch


@asynccontextmanager
async def a_member(image: ClusterImage | None = None) -> AsyncIterator[Member]:
    member = Member(image)
    await member.follower.start()
    try:
        yield member
    finally:
        await member.follower.stop()


A, B = a_topic("a", a_partition(0, 1, 1)), a_topic("b", a_partition(0, 1, 1))


# --- the difference ---


def test_nothing_differs_between_a_picture_and_itself() -> None:
    picture = a_picture(A, B)
    assert difference(picture, picture) == Difference((), (), False, False)
    assert difference(picture, a_picture(A, B)) == Difference((), (), False, False)


def test_topics_come_go_and_change() -> None:
    grown = a_topic("a", a_partition(0, 1, 1), a_partition(1, 1, 1))
    assert difference(a_picture(A), a_picture(A, B)).changed == (B,)
    assert difference(a_picture(A, B), a_picture(A)).deleted == (B,)
    assert difference(a_picture(A), a_picture(grown)) == Difference((), (grown,), False, False)


def test_a_topic_made_anew_under_its_name_is_gone_and_there() -> None:
    anew = a_topic("a", a_partition(0, 1, 1), incarnation=1)
    found = difference(a_picture(A), a_picture(anew))
    assert (found.deleted, found.changed) == ((A,), (anew,))


def test_brokers_and_their_settings_are_told_apart() -> None:
    assert difference(a_picture(), a_picture(brokers=(1, 2))) == Difference((), (), False, True)
    configured = a_picture(configs={"log.retention.ms": "5"})
    assert difference(a_picture(), configured) == Difference((), (), True, False)


# --- applying it ---


def test_the_picture_of_the_start_is_true_when_start_returns() -> None:
    async def scenario() -> None:
        picture = a_picture(A, a_topic("c", a_partition(0, 2, 2), a_partition(1, 2, 2, 1)))
        async with a_member(picture) as member:
            assert member.held() == expected(picture)
            assert set(member.held()) == {"a-0", "c-1"}

    run(scenario())


def test_a_log_that_is_found_torn_is_cut_for_good_before_it_is_led() -> None:
    async def scenario() -> None:
        member = Member(a_picture(A, B))
        for name in ("a-0", "b-0"):
            file = member.disk.open(f"/data/{name}/{0:020}.log", create=True)
            file.write_at(0, b"torn")
            file.sync()
        await member.follower.start()
        assert member.held() == expected(a_picture(A, B))
        assert not any(each.log.flusher.is_cut for each in member.partitions)
        member.disk.lose_power(lambda _: 0)
        assert member.disk.open(f"/data/a-0/{0:020}.log").size() == 0
        await member.follower.stop()

    run(scenario())


def test_a_topic_made_anew_has_none_of_the_old_records() -> None:
    async def scenario() -> None:
        async with a_member(a_picture(A)) as member:
            old = member.partitions.find("a", 0)
            old.append(batch(b"old"))
            await member.show(a_picture(a_topic("a", a_partition(0, 1, 1), incarnation=1)))
            new = member.partitions.find("a", 0)
            assert new is not old
            assert old.is_closed
            assert new.log.end_offset == 0
            assert member.following.events.index("leave a-0") < member.following.events.index(
                "update a-0", 1
            )

    run(scenario())


def test_settings_of_a_topic_and_of_all_brokers_take_effect() -> None:
    async def scenario() -> None:
        async with a_member(a_picture(A, B)) as member:
            configured = a_topic("a", a_partition(0, 1, 1), configs={"retention.ms": "7"})
            await member.show(a_picture(configured, B))
            assert member.partitions.find("a", 0).log.settings.retention_ms == 7
            await member.show(a_picture(configured, B, configs={"log.retention.ms": "9"}))
            assert member.partitions.find("a", 0).log.settings.retention_ms == 7
            assert member.partitions.find("b", 0).log.settings.retention_ms == 9

    run(scenario())


def test_a_broker_that_comes_back_is_followed_again() -> None:
    async def scenario() -> None:
        followed = a_topic("a", a_partition(0, 2, 2, 1))
        async with a_member(a_picture(followed)) as member:
            member.following.events.clear()
            await member.show(a_picture(followed, brokers=(1, 2)))
            assert "update a-0" in member.following.events

    run(scenario())


def test_who_watches_is_told_what_was_applied_once_it_is() -> None:
    async def scenario() -> None:
        async with a_member() as member:
            told: list[tuple[list[str], int]] = []
            member.follower.observers.append(
                lambda found: told.append(([t.name for t in found.changed], len(member.partitions)))
            )
            await member.show(a_picture(A))
            assert told == [(["a"], 1)]

    run(scenario())


def test_catching_up_waits_for_the_picture_of_now_and_no_later_one() -> None:
    async def scenario() -> None:
        async with a_member() as member:
            may_go_on: asyncio.Queue[None] = asyncio.Queue()
            create = member.replicas.create

            async def slowly(topics: object) -> object:
                await may_go_on.get()
                return await create(topics)  # type: ignore[arg-type]

            member.replicas.create = slowly  # type: ignore[assignment,method-assign]
            member.pictures.show(a_picture(A))
            waiting = asyncio.ensure_future(member.follower.caught_up())
            await turns()
            assert not waiting.done()
            member.pictures.show(a_picture(A, B))
            may_go_on.put_nowait(None)
            await turns()
            assert waiting.done(), "what comes after it is no matter of who waits for it"
            may_go_on.put_nowait(None)
            await member.follower.caught_up()

    run(scenario())


def test_a_log_that_cannot_be_opened_stops_neither_the_others_nor_what_follows() -> None:
    async def scenario() -> None:
        async with a_member() as member:

            def refuse(change: str) -> None:
                if "/data/a-0" in change:
                    raise OSError(28, "no space left on device")

            member.disk.before_change = refuse
            await asyncio.wait_for(member.show(a_picture(A, B)), 5)
            assert set(member.held()) == {"b-0"}
            c = a_topic("c", a_partition(0, 1, 1))
            await asyncio.wait_for(member.show(a_picture(A, B, c)), 5)
            assert set(member.held()) == {"b-0", "c-0"}
            member.disk.before_change = None
            await pass_time(RETRY_SECONDS + 1)
            await turns()
            assert member.held() == expected(a_picture(A, B, c))

    run(scenario())


def test_files_that_cannot_be_set_aside_do_not_stop_what_follows() -> None:
    async def scenario() -> None:
        async with a_member(a_picture(A)) as member:

            def refuse(change: str) -> None:
                if change.startswith("rename /data/a-0"):
                    raise OSError(5, "input/output error")

            member.disk.before_change = refuse
            await asyncio.wait_for(member.show(a_picture(B)), 5)
            assert set(member.held()) == {"b-0"}

    run(scenario())


# --- replicas taken away ---


def test_a_replica_taken_away_is_left_and_its_log_removed() -> None:
    async def scenario() -> None:
        both = a_topic("a", a_partition(0, 2, 2, 1), a_partition(1, 1, 1))
        async with a_member(a_picture(both, brokers=(1, 2, 3))) as member:
            old = member.partitions.find("a", 0)
            moved = a_topic("a", a_partition(0, 2, 2, 3, epoch=1), a_partition(1, 1, 1))
            picture = a_picture(moved, brokers=(1, 2, 3))
            await member.show(picture)
            assert member.held() == expected(picture)
            assert set(member.held()) == {"a-1"}
            assert old.is_closed
            assert "leave a-0" in member.following.events
            assert [str(each) for each in member.directory.partitions()] == ["a-1"]

    run(scenario())


def test_a_replica_that_comes_back_begins_with_an_empty_log() -> None:
    async def scenario() -> None:
        async with a_member(a_picture(A)) as member:
            member.partitions.find("a", 0).append(batch(b"old"))
            await member.show(a_picture(a_topic("a", a_partition(0, 2, 2, epoch=1))))
            assert not len(member.partitions)
            await member.show(a_picture(a_topic("a", a_partition(0, 2, 2, 1, epoch=1, isr=[2]))))
            assert member.partitions.find("a", 0).log.end_offset == 0

    run(scenario())


def test_nothing_is_deleted_by_a_picture_older_than_the_role_or_one_that_contradicts_itself() -> (
    None
):
    async def scenario() -> None:
        held = a_topic("a", a_partition(0, 1, 1, 2, epoch=5))
        async with a_member(a_picture(held)) as member:
            await member.show(a_picture(a_topic("a", a_partition(0, 2, 2, epoch=4))))
            assert len(member.partitions) == 1
            await member.show(a_picture(a_topic("a", a_partition(0, 2, 2, epoch=6, isr=[1, 2]))))
            assert len(member.partitions) == 1

    run(scenario())
