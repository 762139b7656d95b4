"""What nobody asks for is done in time, and one log that fails keeps no other from it."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import pytest

from ottla.broker.compactor import CompactionStopped, Throttle
from ottla.broker.flusher import Flusher
from ottla.broker.housekeeping import FLUSH_CHECK_MS, REMOVE_DELETED_MS, REOPEN_MS, Housekeeping
from ottla.errors import StorageFailed
from ottla.storage.log import Log
from unit.broker.cluster import Member, a_partition, a_picture, a_topic
from unit.net.running import pass_time, run, turns
from unit.net.served import wait_until
from unit.storage.logs import NOW_MS, batch

HOUR_MS = 3_600_000


@asynccontextmanager
async def kept(**configs: str) -> AsyncIterator[Member]:
    """A broker with one topic of these settings, and its housekeeping."""
    named = {name.replace("_", "."): value for name, value in configs.items()}
    picture = a_picture(a_topic("a", a_partition(0, 1, 1), configs=named))
    member = Member(picture)
    await member.follower.start()
    with ThreadPoolExecutor(1) as executor:
        flusher = Flusher(executor, member.directory)
        keeping = Housekeeping(
            member.partitions, member.directory, flusher, member.view, member.clock
        )
        keeping.start()
        await turns()
        try:
            yield member
        finally:
            await keeping.stop()
            await flusher.wait_idle()
            await member.follower.stop()


async def later(member: Member, ms: int) -> None:
    member.clock.ms += ms
    await pass_time(ms / 1000)


def test_old_segments_go_when_retention_is_looked_at() -> None:
    async def scenario() -> None:
        async with kept(retention_ms=str(HOUR_MS)) as member:
            partition = member.partitions.find("a", 0)
            partition.append(batch(b"old", timestamp=NOW_MS))
            await later(member, HOUR_MS // 2)
            assert partition.log.start_offset == 0
            await later(member, HOUR_MS)
            assert partition.log.start_offset == 1

    run(scenario())


def test_a_log_is_flushed_when_its_time_has_come() -> None:
    async def scenario() -> None:
        async with kept(flush_ms="5000") as member:
            partition = member.partitions.find("a", 0)
            partition.append(batch(b"a"))
            await later(member, FLUSH_CHECK_MS)
            assert partition.log.recovery_point == 0
            await later(member, 5_000)
            await wait_until(lambda: partition.log.recovery_point == 1)

    run(scenario())


def test_a_fenced_log_is_opened_again_once_the_disk_works() -> None:
    async def scenario() -> None:
        async with kept() as member:
            partition = member.partitions.find("a", 0)
            partition.append(batch(b"a"))
            partition.log.fence("the disk failed")
            with pytest.raises(StorageFailed):
                partition.append(batch(b"b"))

            def refuse(_change: str) -> None:
                raise OSError(5, "input/output error")

            member.disk.before_change = refuse
            member.disk.space_bytes = 0
            await later(member, REOPEN_MS)
            member.disk.before_change = member.disk.space_bytes = None
            await later(member, REOPEN_MS)
            assert not partition.log.is_fenced
            partition.append(batch(b"b"))
            assert partition.log.high_watermark == partition.log.end_offset == 2

    run(scenario())


def test_files_of_deleted_topics_are_removed_after_their_delay() -> None:
    async def scenario() -> None:
        async with kept(file_delete_delay_ms="60000") as member:
            member.partitions.find("a", 0).append(batch(b"a"))
            topics = member.view.image.topics.values()
            await member.show(a_picture(deleted=topics))

            def left() -> list[str]:
                return [e.name for e in member.disk.entries("/data") if e.name.startswith("a-0")]

            await later(member, REMOVE_DELETED_MS)
            await turns(50)
            assert len(left()) == 1
            await later(member, 60_000)
            await wait_until(lambda: not left())

    run(scenario())


class Waits(threading.Event):
    """Keeps for how long a thread was made to wait, without waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout or 0.0)
        return self.is_set()


def test_compaction_waits_as_long_as_its_bytes_are_allowed_to_take() -> None:
    waits = Waits()
    pause = Throttle(1000.0, waits)
    pause(50_000)
    pause(50_000)
    assert waits.seconds[0] == pytest.approx(50, abs=1)
    assert waits.seconds[1] == pytest.approx(100, abs=1), "nothing was waited yet in this test"


def test_compaction_is_not_throttled_below_its_limit_and_ends_with_the_broker() -> None:
    waits = Waits()
    pause = Throttle(float("inf"), waits)
    pause(1 << 40)
    assert waits.seconds == [0.0]
    waits.set()
    with pytest.raises(CompactionStopped):
        pause(1)


def test_duties_go_on_after_one_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    real = Log.needs_flush

    def fails_once(log: Log, now_ms: int) -> bool:
        calls.append(now_ms)
        if len(calls) == 1:
            raise OSError(5, "input/output error")
        return real(log, now_ms)

    async def scenario() -> None:
        async with kept(flush_ms="1000") as member:
            partition = member.partitions.find("a", 0)
            partition.append(batch(b"a"))
            for _ in range(3):
                await later(member, FLUSH_CHECK_MS)
            await wait_until(lambda: partition.log.recovery_point == 1)

    monkeypatch.setattr(Log, "needs_flush", fails_once)
    run(scenario())
