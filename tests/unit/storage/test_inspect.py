"""Looking at files: rows for every batch, and a finding for every kind of damage."""

from __future__ import annotations

import pytest

from ottla.storage.inspect import inspect_segment, verify_log
from unit.storage.logs import DIRECTORY, World, append, batch, settings

LOG = f"{DIRECTORY}/{0:020d}.log"


def a_closed_world() -> World:
    world = World(settings(index_interval_bytes=0))
    log = world.open()
    append(log, batch(b"a", b"b"), batch(b"c"), batch(b"d"))
    log.close()
    return world


def test_every_batch_is_a_row():
    rows = list(inspect_segment(a_closed_world().disk, LOG))
    assert [(row.batch.base_offset, row.batch.record_count) for row in rows] == [
        (0, 2),
        (2, 1),
        (3, 1),
    ]
    assert [row.position for row in rows][1] == rows[0].size_bytes
    assert all(row.problem is None for row in rows)


def test_a_sound_log_has_no_findings():
    world = a_closed_world()
    found = verify_log(world.disk, DIRECTORY)
    assert (found.segments, found.batches, found.records) == (1, 3, 4)
    assert (found.start_offset, found.end_offset) == (0, 4)
    assert found.findings == ()


def test_a_damaged_batch_is_named_and_the_rest_still_shown():
    world = a_closed_world()
    first = next(inspect_segment(world.disk, LOG))
    world.disk.damage(LOG, first.size_bytes + 65)
    rows = list(inspect_segment(world.disk, LOG))
    assert [row.problem is None for row in rows] == [True, False, True]
    (finding,) = verify_log(world.disk, DIRECTORY).findings
    assert finding.position == first.size_bytes
    assert "checksum" in finding.problem


def test_a_torn_end_is_named():
    world = a_closed_world()
    file = world.disk.open(LOG)
    file.truncate(file.size() - 3)
    rows = list(inspect_segment(world.disk, LOG))
    assert rows[-1].batch is None
    assert "part of a batch" in rows[-1].problem


def test_zeros_at_the_end_are_named():
    world = a_closed_world()
    file = world.disk.open(LOG)
    file.write_at(file.size(), bytes(100))
    rows = list(inspect_segment(world.disk, LOG))
    assert "zeros" in rows[-1].problem
    assert rows[-1].size_bytes == 100


def test_an_offset_that_goes_back_is_named():
    world = a_closed_world()
    file = world.disk.open(LOG)
    file.write_at(file.size(), file.read_at(0, next(inspect_segment(world.disk, LOG)).size_bytes))
    assert "comes after" in list(inspect_segment(world.disk, LOG))[-1].problem


@pytest.mark.parametrize(
    "name",
    [
        f"{0:020d}.index",
        f"{0:020d}.timeindex",
        f"{0:020d}.txnindex",
        f"{4:020d}.snapshot",
        "leader-epoch-checkpoint",
    ],
)
def test_damage_beside_the_data_is_named(name: str):
    world = a_closed_world()
    file = world.disk.open(f"{DIRECTORY}/{name}", create=True)
    file.truncate(0)
    file.write_at(0, b"\x01\x02\x03")
    (finding,) = verify_log(world.disk, DIRECTORY).findings
    assert finding.path.endswith(name)


def test_an_index_entry_that_points_nowhere_is_named():
    world = a_closed_world()
    path = f"{DIRECTORY}/{0:020d}.index"
    world.disk.damage(path, 7, 0x01)
    (finding,) = verify_log(world.disk, DIRECTORY).findings
    assert finding.path == path


def test_a_segment_that_is_gone_is_named():
    world = World(settings(index_interval_bytes=0))
    log = world.open()
    for value in (b"a", b"b", b"c"):
        append(log, batch(value))
        log.roll()
    log.close()
    world.disk.remove(f"{DIRECTORY}/{1:020d}.log")
    findings = verify_log(world.disk, DIRECTORY).findings
    assert any("offsets 1 to 1 are missing" in finding.problem for finding in findings)
