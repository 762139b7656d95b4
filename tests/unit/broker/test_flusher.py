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
from unit.broker.stage import ME, Stage, an_image
from unit.net.running import run, turns
from unit.storage.logs import DIRECTORY


def flushed_by(flusher: Flusher, **changes: Any) -> Stage:
    """A partition that has every message synced by this flusher."""
    stage = Stage(flush_messages=1, **changes)
    stage.partition._services = Services(stage.standing, flusher, stage.wishes, stage.pleas)
    stage.partition.take_role(an_image(ME))
    return stage


def test_what_was_written_is_committed_once_it_is_synced() -> None:
    async def scenario() -> None:
        with ThreadPoolExecutor(1) as executor:
            stage = flushed_by(Flusher(executor))
            await stage.committed(stage.append(b"a"))
            assert stage.partition.log.recovery_point == 1

    run(scenario())


def test_what_comes_while_a_round_runs_goes_into_the_next() -> None:
    async def scenario() -> None:
        with ThreadPoolExecutor(1) as executor:
            flusher = Flusher(executor)
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
            flusher = Flusher(executor)
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
            flusher = Flusher(executor)
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
            flusher = Flusher(executor)
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
