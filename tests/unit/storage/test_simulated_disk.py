"""The disk that lies does so as promised: what is synced stays, the rest is a matter of chance."""

from __future__ import annotations

import errno

import pytest

from ottla.storage.simulated_disk import SimulatedDisk


def nothing(_: int) -> int:
    return 0


def everything(n: int) -> int:
    return n - 1


def test_synced_bytes_survive_and_unsynced_ones_may_not():
    for choose, expected in ((nothing, b"safe"), (everything, b"safe, lost")):
        disk = SimulatedDisk()
        file = disk.open("/a", create=True)
        file.write_at(0, b"safe")
        file.sync()
        disk.sync_directory("")
        file.write_at(4, b", lost")
        disk.lose_power(choose)
        data = disk.open("/a").read_at(0, 99)
        assert data.rstrip(b"\0") == expected


def test_the_last_write_may_be_torn():
    disk = SimulatedDisk()
    disk.open("/a", create=True).write_at(0, b"0123456789")
    disk.sync_directory("")
    answers = iter([0, 4, 1])
    disk.lose_power(lambda n: next(answers))
    assert disk.open("/a").read_at(0, 99) == b"0123"


def test_an_unsynced_name_is_lost_with_all_later_ones():
    disk = SimulatedDisk()
    disk.open("/a", create=True)
    disk.sync_directory("")
    disk.rename("/a", "/b")
    disk.open("/c", create=True)
    disk.lose_power(nothing)
    assert [entry.name for entry in disk.entries("")] == ["a"]


def test_a_full_disk_takes_what_fits_and_says_so():
    disk = SimulatedDisk()
    file = disk.open("/a", create=True)
    disk.space_bytes = 4
    with pytest.raises(OSError, match="space") as caught:
        file.write_at(0, b"123456")
    assert caught.value.errno == errno.ENOSPC
    assert file.size() == 4
    file.truncate(0)
    file.write_at(0, b"1234")
