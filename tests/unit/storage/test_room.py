"""Whether a disk takes something: only what was written, and synced, counts."""

from pathlib import Path

import pytest

from ottla.storage.disk import LocalDisk
from ottla.storage.room import PROBE_BYTES, has_room
from ottla.storage.simulated_disk import SimulatedDisk


@pytest.fixture
def disk() -> SimulatedDisk:
    made = SimulatedDisk()
    made.make_directory("/data")
    return made


def test_a_disk_with_room_is_left_as_it_was(disk: SimulatedDisk) -> None:
    disk.space_bytes = PROBE_BYTES
    assert [has_room(disk, "/data") for _ in range(2)] == [True, True]
    assert disk.entries("/data") == []


def test_a_full_disk_has_none(disk: SimulatedDisk) -> None:
    disk.space_bytes = PROBE_BYTES - 1
    assert not has_room(disk, "/data")
    assert (disk.entries("/data"), disk.space_bytes) == ([], PROBE_BYTES - 1)


def test_a_disk_that_cannot_sync_has_none(disk: SimulatedDisk) -> None:
    disk.fail_sync = True
    assert not has_room(disk, "/data")


def test_a_real_directory_has_room_and_one_that_is_gone_has_none(tmp_path: Path) -> None:
    assert has_room(LocalDisk(), str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    assert not has_room(LocalDisk(), str(tmp_path / "gone"))
