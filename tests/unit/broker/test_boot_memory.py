"""A killed process is told from a machine that went down."""

from __future__ import annotations

from ottla.broker.boot_memory import has_been_up, machine_boot_id, note_boot
from ottla.storage.simulated_disk import SimulatedDisk


def a_disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_directory("/data")
    return disk


def test_only_a_boot_that_was_noted_is_the_same() -> None:
    disk = a_disk()
    assert not has_been_up(disk, "/data", "first")
    note_boot(disk, "/data", "first")
    assert has_been_up(disk, "/data", "first")
    assert not has_been_up(disk, "/data", "second")
    note_boot(disk, "/data", "second")
    assert has_been_up(disk, "/data", "second")


def test_a_machine_that_does_not_tell_counts_as_having_gone_down() -> None:
    disk = a_disk()
    note_boot(disk, "/data", None)
    assert not has_been_up(disk, "/data", None)


def test_a_machine_tells_the_same_until_it_is_started_again() -> None:
    assert machine_boot_id() == machine_boot_id()
