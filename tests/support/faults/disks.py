"""A disk that fills up under load."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.eventually import eventually
from support.faults.stage import RECORDS_BEFORE, Stage

DISK_BYTES = 48 << 20
FILLER = "filler"
FULL_SECONDS_MAX = 60.0
COMPLAINT = "No space left on device"


class CannotMount(Exception):
    """This user may not mount file systems."""

    def __init__(self) -> None:
        super().__init__("mounting a small disk is not permitted here")


@contextmanager
def small_disk(place: Path) -> Iterator[None]:
    """A file system of a few megabytes in that directory."""
    place.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise CannotMount from error
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True, capture_output=True)


def fill_leaders_disk(stage: Stage) -> None:
    """Others lead what it led, and clients go on with them."""
    leader = stage.leader
    filler = _fill(stage, leader)
    stage.wait_rows(lambda rows: all(row.leader != leader for row in rows), "another leader")
    stage.load.wait_acknowledged(RECORDS_BEFORE)
    filler.unlink()


def fill_followers_disk(stage: Stage) -> None:
    """The others go on without it."""
    full = stage.rows()[0].replicas[-1]
    assert stage.leader != full
    filler = _fill(stage, full)
    stage.wait_rows(lambda rows: all(full not in row.in_sync for row in rows), "out of sync")
    stage.load.wait_acknowledged(RECORDS_BEFORE)
    filler.unlink()


def _fill(stage: Stage, broker: int) -> Path:
    """Takes all space there is, until the broker has noticed that it gets none."""
    data, log = stage.cluster.brokers[broker].data, stage.cluster.brokers[broker].log_path
    filler = data / FILLER
    with filler.open("ab", buffering=0) as file:

        def has_noticed() -> bool:
            _write_all_there_is(file.write)
            return COMPLAINT in log.read_text(errors="replace")

        eventually(has_noticed, "a broker without space", timeout_seconds=FULL_SECONDS_MAX)
    return filler


def _write_all_there_is(write: object) -> None:
    assert callable(write)
    chunk = bytes(1 << 20)
    while chunk:
        try:
            write(chunk)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            chunk = chunk[: len(chunk) // 2]
