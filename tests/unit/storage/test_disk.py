"""The local file system through the few things asked of it, and the bound on descriptors."""

from __future__ import annotations

import gc
import os
from pathlib import Path

from ottla.storage.descriptor_pool import DescriptorPool
from ottla.storage.disk import LocalDisk, read_file, replace_file


def test_a_file_is_written_and_read_at_positions(tmp_path: Path):
    file = LocalDisk().open(f"{tmp_path}/a", create=True)
    file.write_at(3, b"abc")
    assert file.read_at(0, 10) == b"\0\0\0abc"
    file.truncate(4)
    file.sync()
    assert file.size() == 4


def test_a_replaced_file_is_the_old_or_the_new(tmp_path: Path):
    disk, path = LocalDisk(), f"{tmp_path}/checkpoint"
    assert read_file(disk, path) is None
    replace_file(disk, path, b"old and long", sync=True)
    replace_file(disk, path, b"new", sync=True)
    assert read_file(disk, path) == b"new"
    assert [entry.name for entry in disk.entries(str(tmp_path))] == ["checkpoint"]


def test_a_lock_is_held_by_one(tmp_path: Path):
    disk, path = LocalDisk(), f"{tmp_path}/.lock"
    lock = disk.lock(path)
    assert lock is not None
    assert disk.lock(path) is None
    lock.release()
    assert disk.lock(path) is not None


def test_the_pool_keeps_no_more_files_open_than_allowed(tmp_path: Path):
    pool = DescriptorPool(LocalDisk(), open_files_max=4)
    files = [pool.file(f"{tmp_path}/{number}") for number in range(20)]
    before = len(os.listdir("/proc/self/fd"))
    for number, pooled in enumerate(files):
        pooled.open(create=True).write_at(0, b"%d" % number)
    gc.collect()
    assert pool.open_count <= 4
    assert len(os.listdir("/proc/self/fd")) <= before + 4
    for number, pooled in enumerate(files):
        assert pooled.open().read_at(0, 9) == b"%d" % number


def test_a_file_in_use_stays_open_when_the_pool_forgets_it(tmp_path: Path):
    pool = DescriptorPool(LocalDisk(), open_files_max=1)
    held = pool.file(f"{tmp_path}/held")
    file = held.open(create=True)
    file.write_at(0, b"still here")
    for number in range(5):
        pool.file(f"{tmp_path}/{number}").open(create=True)
    assert not held.is_open
    assert os.pread(file.fileno(), 10, 0) == b"still here"


def test_the_pool_forgets_what_was_not_used_lately(tmp_path: Path):
    pool = DescriptorPool(LocalDisk(), open_files_max=2)
    busy, idle, new = (pool.file(f"{tmp_path}/{name}") for name in ("busy", "idle", "new"))
    for pooled in (busy, idle):
        pooled.open(create=True)
        pooled.was_used = False
    busy.open()
    new.open(create=True)
    assert busy.is_open
    assert not idle.is_open
