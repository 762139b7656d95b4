"""What is in memory is known to be, by the kernel's word or by trying."""

from __future__ import annotations

import os

import pytest

from ottla.net import residency
from ottla.net.residency import PAGE_BYTES, PageCache, is_resident, read_resident, warm
from unit.net.served import DataFile

MEGABYTE = 1 << 20


@pytest.fixture
def cold_file(data_file: DataFile) -> DataFile:
    """A file of which nothing is in memory."""
    os.fsync(data_file.fileno())
    os.posix_fadvise(data_file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    cache = PageCache()
    if cache.holds(data_file.fileno(), 0, 1) is not False:
        pytest.skip("the kernel does not tell, or keeps everything in memory")
    return data_file


def be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernel not tell what it has cached."""
    cache = PageCache()
    cache.is_known = False
    monkeypatch.setattr(residency, "page_cache", lambda: cache)


@pytest.mark.parametrize("size", [1, 5000, MEGABYTE])
@pytest.mark.parametrize("is_told", [True, False])
def test_a_run_in_memory_is_known_to_be(
    data_file: DataFile, monkeypatch: pytest.MonkeyPatch, size: int, *, is_told: bool
) -> None:
    if not is_told:
        be_unknown(monkeypatch)
    region = data_file.region(77, size)
    warm(region)
    assert is_resident(region)


def test_a_hole_of_one_page_in_a_run_is_found(cold_file: DataFile) -> None:
    whole = cold_file.region(3, 3 * MEGABYTE)
    assert not is_resident(whole)
    warm(whole)
    assert is_resident(whole)
    hole = MEGABYTE + 7 * PAGE_BYTES
    os.posix_fadvise(cold_file.fileno(), hole, PAGE_BYTES, os.POSIX_FADV_DONTNEED)
    if PageCache().holds(cold_file.fileno(), hole, 1):
        pytest.skip("the file system keeps larger pages")
    assert not is_resident(whole)
    assert is_resident(cold_file.region(3, hole - 3)), "the run ends before the hole"
    assert is_resident(cold_file.region(hole + PAGE_BYTES, MEGABYTE)), "it begins behind it"


def test_a_kernel_that_does_not_know_the_call_is_asked_once(
    data_file: DataFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = PageCache()
    if not cache.is_known:
        pytest.skip("the system has no such call")
    assert cache.holds(-1, 0, 1) is None, "there is no such file"
    assert not cache.is_known
    monkeypatch.setattr(residency, "page_cache", lambda: cache)
    warm(data_file.region(0, MEGABYTE))
    assert is_resident(data_file.region(0, MEGABYTE))


def test_where_the_kernel_does_not_tell_bytes_are_tried_at_strides(
    data_file: DataFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_unknown(monkeypatch)
    probed: list[int] = []

    def preadv(_descriptor: int, _buffers: object, position: int, _flags: int = 0) -> int:
        probed.append(position)
        if position >= MEGABYTE:
            raise BlockingIOError(11, "would wait for the disk")
        return 1

    monkeypatch.setattr(residency, "_NOWAIT", 8)
    monkeypatch.setattr(residency.os, "preadv", preadv)
    assert is_resident(data_file.region(0, MEGABYTE))
    assert max(probed) == MEGABYTE - 1, "the last byte too"
    assert len(set(probed)) == 9
    assert not is_resident(data_file.region(0, MEGABYTE + 1))


def test_a_short_run_is_copied_only_where_all_of_it_is_in_memory(
    data_file: DataFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    region = data_file.region(5, 1000)
    warm(region)
    assert read_resident(region) == data_file.data[5:1005]

    def preadv(error: OSError | None, count: int) -> None:
        def read(*_: object) -> int:
            if error is not None:
                raise error
            return count

        monkeypatch.setattr(residency.os, "preadv", read)

    preadv(BlockingIOError(11, "would wait for the disk"), 0)
    assert read_resident(region) is None
    preadv(None, 999)
    assert read_resident(region) is None
    preadv(OSError(95, "this file system knows no such flag"), 0)
    assert read_resident(region) == data_file.data[5:1005]
