"""Leader epochs: where each began, and what truncation leaves."""

from __future__ import annotations

from ottla.storage.epoch_history import EpochHistory
from ottla.storage.simulated_disk import SimulatedDisk

PATH = "/epochs"


def a_history(*entries: tuple[int, int]) -> EpochHistory:
    history = EpochHistory(SimulatedDisk(), PATH)
    for epoch, start in entries:
        history.assign(epoch, start)
    return history


def starts(history: EpochHistory) -> list[tuple[int, int]]:
    return [(entry.epoch, entry.start_offset) for entry in history.entries]


def test_an_epoch_begins_once():
    history = a_history((1, 0), (1, 5), (2, 10))
    assert starts(history) == [(1, 0), (2, 10)]
    assert history.latest == 2


def test_a_new_entry_removes_those_it_contradicts():
    assert starts(a_history((1, 0), (2, 10), (3, 20), (5, 10))) == [(1, 0), (5, 10)]
    assert starts(a_history((1, 0), (4, 10), (3, 20))) == [(1, 0), (3, 20)]


def test_the_end_of_an_epoch_is_the_start_of_the_next():
    history = a_history((2, 5), (4, 10), (7, 20))
    assert history.end_of(7, 33).end_offset == 33
    assert (history.end_of(5, 33).epoch, history.end_of(5, 33).end_offset) == (4, 20)
    assert (history.end_of(1, 33).epoch, history.end_of(1, 33).end_offset) == (1, 5)
    assert history.end_of(8, 33) is None
    assert history.end_of(-1, 33) is None
    assert a_history().end_of(0, 0) is None


def test_truncating_the_end_drops_epochs_that_begin_there():
    history = a_history((1, 0), (2, 10), (3, 20))
    history.truncate_end(10)
    assert starts(history) == [(1, 0)]


def test_truncating_the_start_keeps_the_epoch_that_covers_it():
    history = a_history((1, 0), (2, 10), (3, 20))
    history.truncate_start(15)
    assert starts(history) == [(2, 15), (3, 20)]
    assert history.epoch_at(17) == 2


def test_the_file_is_kafkas_and_comes_back():
    disk = SimulatedDisk()
    history = EpochHistory(disk, PATH)
    history.assign(1, 0)
    history.assign(3, 12)
    history.write()
    assert disk.open(PATH).read_at(0, 99) == b"0\n2\n1 0\n3 12\n"
    assert starts(EpochHistory.load(disk, PATH)) == [(1, 0), (3, 12)]


def test_a_change_is_in_the_file_when_it_is_written_and_not_before():
    disk = SimulatedDisk()
    history = EpochHistory(disk, PATH)
    history.assign(1, 0)
    assert not history.is_written
    assert not disk.exists(PATH)
    history.write()
    assert history.is_written
    history.assign(2, 10)
    assert not history.is_written
    assert starts(EpochHistory.load(disk, PATH)) == [(1, 0)]


def test_a_file_that_cannot_be_right_is_not_believed():
    for text in (
        b"",
        b"0\n",
        b"1\n0\n",
        b"0\n2\n1 0\n",
        b"0\n1\nx y\n",
        b"0\n2\n3 5\n2 9\n",
        b"\xff",
    ):
        disk = SimulatedDisk()
        disk.open(PATH, create=True).write_at(0, text)
        assert EpochHistory.load(disk, PATH) is None
    assert EpochHistory.load(SimulatedDisk(), PATH) is None
