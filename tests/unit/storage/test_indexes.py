"""The three index files and their cache: look-ups, cutting, and what cannot be right."""

from __future__ import annotations

import struct

import pytest

from ottla.storage.index_cache import IndexCache, SegmentIndexes
from ottla.storage.offset_index import OffsetIndex
from ottla.storage.simulated_disk import SimulatedDisk
from ottla.storage.time_index import TimeIndex
from ottla.storage.transaction_index import (
    AbortedTransaction,
    AbortedTransactions,
    TransactionIndex,
)

PATH = "/index"


def an_offset_index() -> OffsetIndex:
    index = OffsetIndex(100)
    for offset, position in ((104, 0), (109, 50), (120, 90)):
        index.append(offset, position)
    return index


def test_an_offset_is_looked_for_from_the_last_entry_not_past_it():
    index = an_offset_index()
    assert index.entry_before(103) is None
    assert index.entry_before(104).position == 0
    assert index.entry_before(119) == (109, 50)
    assert index.entry_before(10_000) == (120, 90)


def test_the_batch_that_holds_an_offset_is_the_first_that_ends_at_or_past_it():
    index = an_offset_index()
    assert index.entry_from(100) == (104, 0)
    assert index.entry_from(104) == (104, 0)
    assert index.entry_from(105) == (109, 50)
    assert index.entry_from(120) == (120, 90)
    assert index.entry_from(121) is None


def test_an_offset_index_is_written_as_kafka_does_and_read_back():
    disk, index = SimulatedDisk(), an_offset_index()
    index.write(disk, PATH)
    data = disk.open(PATH).read_at(0, 100)
    assert data == struct.pack(">6i", 4, 0, 9, 50, 20, 90)
    index.append(130, 120)
    index.write(disk, PATH)
    loaded = OffsetIndex.load(disk, PATH, 100, log_bytes=200)
    assert loaded is not None
    assert loaded.entry_before(500) == (130, 120)
    assert len(loaded) == 4


def test_a_cut_offset_index_stays_cut_in_the_file():
    disk, index = SimulatedDisk(), an_offset_index()
    index.write(disk, PATH)
    index.truncate_to_position(50)
    index.write(disk, PATH)
    loaded = OffsetIndex.load(disk, PATH, 100, log_bytes=200)
    assert loaded is not None
    assert loaded.entry_before(500) == (104, 0)


@pytest.mark.parametrize(
    "entries",
    [(4, 60, 9, 50), (9, 0, 4, 50), (4, 0, 9, 200), (-1, 0, 9, 50), (4, -5, 9, 50)],
    ids=["positions fall", "offsets fall", "past the data", "below the base", "negative"],
)
def test_an_offset_index_that_cannot_be_right_is_not_loaded(entries: tuple[int, ...]):
    disk = SimulatedDisk()
    disk.open(PATH, create=True).write_at(0, struct.pack(">4i", *entries))
    assert OffsetIndex.load(disk, PATH, 100, log_bytes=200) is None


def test_a_torn_or_missing_index_is_not_loaded():
    disk = SimulatedDisk()
    assert OffsetIndex.load(disk, PATH, 0, log_bytes=9) is None
    assert TimeIndex.load(disk, PATH, 0) is None
    disk.open(PATH, create=True).write_at(0, b"12345")
    assert OffsetIndex.load(disk, PATH, 0, log_bytes=9) is None
    assert TimeIndex.load(disk, PATH, 0) is None
    assert TransactionIndex.load(disk, PATH, 0) is None


def test_a_time_index_keeps_only_ever_later_times():
    disk, index = SimulatedDisk(), TimeIndex(100)
    for timestamp, offset in ((10, 101), (10, 105), (8, 106), (20, 110), (30, 110)):
        index.append(timestamp, offset)
    assert index.last == (20, 110)
    assert index.offset_before(10) == 100
    assert index.offset_before(11) == 101
    assert index.offset_before(21) == 110
    index.write(disk, PATH)
    assert disk.open(PATH).read_at(0, 100) == struct.pack(">qiqi", 10, 1, 20, 10)
    loaded = TimeIndex.load(disk, PATH, 100)
    assert loaded is not None
    loaded.truncate_to(110)
    assert loaded.last == (10, 101)


def test_records_without_a_time_do_not_enter_the_time_index():
    index = TimeIndex(0)
    index.append(-1, 5)
    assert index.last is None


def test_aborted_transactions_are_found_by_the_offsets_they_cover():
    disk, index = SimulatedDisk(), TransactionIndex()
    first = AbortedTransaction(1, 10, 20, 15)
    second = AbortedTransaction(2, 15, 30, 31)
    for entry in (first, second):
        index.append(entry, disk, PATH)
    assert disk.open(PATH).size() == 2 * 34
    loaded = TransactionIndex.load(disk, PATH, 0)
    assert loaded is not None
    assert loaded.overlapping(0, 10) == []
    assert loaded.overlapping(0, 11) == [first]
    assert loaded.overlapping(21, 40) == [second]
    assert loaded.truncate_to(30)
    assert loaded.entries == [first]


def test_a_batch_belongs_to_the_transaction_of_its_own_producer():
    aborted = AbortedTransactions(
        [AbortedTransaction(1, 10, 20, 0), AbortedTransaction(1, 30, 40, 0)]
    )
    assert aborted.containing(1, 20).first_offset == 10
    assert aborted.containing(1, 25) is None
    assert aborted.containing(1, 30).first_offset == 30
    assert aborted.containing(2, 15) is None


def test_the_cache_forgets_the_least_used_index_first():
    cache = IndexCache(memory_bytes_max=60)
    for name in ("a", "b"):
        cache.put(name, SegmentIndexes(an_offset_index(), TimeIndex(0)))
    assert cache.get("a") is not None
    cache.put("c", SegmentIndexes(an_offset_index(), TimeIndex(0)))
    assert cache.get("b") is None
    assert cache.get("a") is not None
    assert cache.memory_bytes == 48
    cache.forget("a")
    assert cache.memory_bytes == 24
