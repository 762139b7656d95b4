"""Many logs are synced in one go, and one that fails fails alone."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ottla.broker.flusher import Flusher
from ottla.broker.partition import Services
from ottla.errors import StorageFailed
from ottla.storage.checkpoint import read_offsets
from ottla.storage.log_directory import RECOVERY_POINTS
from unit.broker.cluster import Member, a_partition, a_picture, a_topic
from unit.broker.stage import ME, Notes, Stage, an_image
from unit.net.running import run, turns
from unit.storage.logs import DIRECTORY, batch


def flushed_by(flusher: Flusher, **changes: Any) -> Stage:
    """A partition that has every message synced by this flusher."""
    stage = Stage(flush_messages=1, **changes)
    stage.partition._services = Services(stage.standing, flusher, stage.wishes, stage.pleas)
    stage.partition.take_role(an_image(ME))
    return stage


def test_what_was_written_is_committed_once_it_is_synced() -> None:
    async def scenario() -> None:
        with ThreadPoolExecutor(1) as executor:
            stage = flushed_by(Flusher(executor, Notes()))
            await stage.committed(stage.append(b"a"))
            assert stage.partition.log.recovery_point == 1

    run(scenario())


def test_what_comes_while_a_round_runs_goes_into_the_next() -> None:
    async def scenario() -> None:
        with ThreadPoolExecutor(1) as executor:
            flusher = Flusher(executor, Notes())
            first, second = flushed_by(flusher), flushed_by(flusher)
            disk_goes_on = threading.Event()
            executor.submit(disk_goes_on.wait, 9)
            one = first.committed(first.append(b"a"))
            await turns()
            more = [first.committed(first.append(b"b")), second.committed(second.append(b"c"))]
            await turns()
            assert not one.done()
            disk_goes_on.set()
            await asyncio.gather(one, *more)
            await flusher.wait_idle()
            assert first.partition.log.recovery_point == 2

    run(scenario())


def test_a_sync_that_fails_fences_the_log_and_tells_who_waits() -> None:
    async def scenario() -> None:
        with ThreadPoolExecutor(1) as executor:
            flusher = Flusher(executor, Notes())
            broken, sound = flushed_by(flusher), flushed_by(flusher)
            broken.world.disk.fail_sync = True
            failing = broken.committed(broken.append(b"a"))
            await sound.committed(sound.append(b"a"))
            with pytest.raises(StorageFailed):
                await failing
            assert broken.partition.log.is_fenced
            assert broken.high_watermark == 0
            with pytest.raises(StorageFailed):
                broken.append(b"b")

    run(scenario())


def test_a_log_whose_files_cannot_be_opened_fails_alone() -> None:
    async def scenario() -> None:
        with ThreadPoolExecutor(1) as executor:
            flusher = Flusher(executor, Notes())
            broken, sound = flushed_by(flusher), flushed_by(flusher)
            failing = broken.committed(broken.append(b"a"))
            passing = sound.committed(sound.append(b"a"))
            broken.partition.log.release()
            broken.world.disk.remove(f"{DIRECTORY}/{0:020}.log")
            await passing
            with pytest.raises(StorageFailed):
                await failing
            assert broken.partition.log.is_fenced
            await sound.committed(sound.append(b"b"))

    run(scenario())


def test_a_partition_deleted_before_its_round_is_left_alone() -> None:
    async def scenario() -> None:
        with ThreadPoolExecutor(1) as executor:
            flusher = Flusher(executor, Notes())
            gone, sound = flushed_by(flusher), flushed_by(flusher)
            gone.append(b"a")
            passing = sound.committed(sound.append(b"a"))
            gone.partition.close()
            gone.partition.log.release()
            gone.world.disk.remove(f"{DIRECTORY}/{0:020}.log")
            await passing
            assert not gone.partition.log.is_fenced
            await flusher.wait_idle()

    run(scenario())


def test_a_cut_is_safe_once_it_is_synced_and_noted() -> None:
    async def scenario() -> None:
        with ThreadPoolExecutor(1) as executor:
            notes = Notes()
            flusher = Flusher(executor, notes)
            stage = flushed_by(flusher)
            await stage.committed(stage.append(b"a"))
            await flusher.wait_idle()
            assert notes.count == 0, "nothing was cut"
            log = stage.partition.log
            log.truncate_to(0)
            notes.disk.space_bytes = 0
            await flusher.sync(stage.partition)
            assert (log.flusher.is_cut, notes.count, log.is_fenced) == (True, 1, False)
            notes.disk.space_bytes = None
            await flusher.sync(stage.partition)
            assert (log.flusher.is_cut, notes.count) == (False, 2)

    run(scenario())


def test_a_cut_that_cannot_wait_is_made_safe_at_once() -> None:
    async def scenario() -> None:
        with ThreadPoolExecutor(1) as executor:
            notes = Notes()
            stage = flushed_by(flusher := Flusher(executor, notes))
            stage.append(b"a")
            await flusher.wait_idle()
            stage.partition.log.truncate_to(0)
            notes.disk.space_bytes = 0
            with pytest.raises(StorageFailed):
                flusher.sync_now(stage.partition)
            assert stage.partition.log.flusher.is_cut
            notes.disk.space_bytes = None
            flusher.sync_now(stage.partition)
            assert not stage.partition.log.flusher.is_cut

    run(scenario())


def test_after_a_cut_the_lower_recovery_point_survives_a_power_cut() -> None:
    """Else what is written after the cut would be taken for safe, and never be looked at."""

    async def scenario() -> None:
        member = Member(a_picture(a_topic("a", a_partition(0, 1, 1))))
        await member.follower.start()
        partition = member.partitions.find("a", 0)
        with ThreadPoolExecutor(1) as executor:
            flusher = Flusher(executor, member.directory)
            partition.append(batch(b"a"))
            partition.append(batch(b"b"))
            await flusher.sync(partition)
            member.directory.begin_checkpoints().run()
            partition.log.truncate_to(1)
            await flusher.sync(partition)
        member.disk.lose_power(lambda _: 0)
        noted = read_offsets(member.disk, f"/data/{RECOVERY_POINTS}")
        assert noted == {partition.id: 1}
        await member.follower.stop()

    run(scenario())
