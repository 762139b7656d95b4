"""Retention: which segments have expired, and what deleting them leaves."""

from __future__ import annotations

import pytest

from ottla.errors import OffsetOutOfRange
from ottla.model.ids import Offset
from ottla.storage.log import Log
from ottla.storage.removal import RemovalJob
from ottla.storage.retention import apply_retention, expired
from ottla.storage.segment import SegmentInfo
from unit.storage.logs import NOW_MS, World, append, batch, settings, values


def infos(*sizes_and_times: tuple[int, int]) -> list[SegmentInfo]:
    """Segments of ten records each, by size and latest timestamp."""
    return [
        SegmentInfo(Offset(10 * n), Offset(10 * n + 10), size, time)
        for n, (size, time) in enumerate(sizes_and_times)
    ]


def bases(
    segments: list[SegmentInfo], *, start: int = 0, high_watermark: int = 10_000, **changes: object
) -> list[int]:
    found = expired(
        segments, settings(**changes), NOW_MS, start_offset=start, high_watermark=high_watermark
    )
    return [info.base_offset for info in found]


OLD, NEW = NOW_MS - 1001, NOW_MS - 999


def test_segments_with_only_old_records_expire():
    segments = infos((5, OLD), (5, OLD), (5, NEW))
    assert bases(segments, retention_ms=1000) == [0, 10]


def test_a_young_segment_protects_those_after_it():
    assert bases(infos((5, OLD), (5, NEW), (5, OLD)), retention_ms=1000) == [0]


def test_even_the_active_segment_expires_but_not_an_empty_one():
    assert bases(infos((5, OLD), (5, OLD)), retention_ms=1000) == [0, 10]
    assert bases(infos((5, OLD), (0, OLD)), retention_ms=1000) == [0]


def test_the_oldest_segments_go_until_the_rest_fits():
    segments = infos((40, NEW), (40, NEW), (40, NEW))
    assert bases(segments, retention_bytes=80) == [0]
    assert bases(segments, retention_bytes=81) == []
    assert bases(segments, retention_bytes=0) == [0, 10, 20]


def test_without_limits_nothing_expires():
    assert bases(infos((5, 0), (5, 0)), retention_ms=-1, retention_bytes=-1) == []


def test_a_compacted_topic_loses_only_what_was_deleted_by_request():
    compacted = {"cleanup_policy": frozenset({"compact"}), "retention_ms": 0}
    assert bases(infos((5, 0), (5, 0), (5, 0)), start=20, **compacted) == [0, 10]
    assert bases(infos((5, 0), (5, 0), (5, 0)), **compacted) == []


def test_what_is_not_committed_stays():
    assert bases(infos((5, OLD), (5, OLD)), high_watermark=15, retention_ms=1000) == [0]


def an_old_log(world: World) -> Log:
    log = world.open()
    for number in range(10):
        append(log, batch(b"%d" % number * 60, timestamp=NOW_MS + number))
    log.advance_high_watermark(log.end_offset)
    return log


def test_deleted_segments_leave_the_directory_after_the_delay():
    world = World(settings(segment_bytes=300, retention_ms=1000, file_delete_delay_ms=500))
    log = an_old_log(world)
    now_ms = world.clock.ms = NOW_MS + 1006
    held = log.read(0, bytes_max=100, end=10)
    gone = apply_retention(log, now_ms)
    assert [info.base_offset for info in gone] == [0, 2, 4]
    assert (log.start_offset, len(values(log))) == (6, 4)
    with pytest.raises(OffsetOutOfRange):
        log.read(5, bytes_max=100, end=10)
    assert held.file.read_at(0, 10)
    assert [name for name in world.names() if name.endswith(".log.deleted")]
    assert log.deleted.take_due(now_ms + 499) == []
    RemovalJob(world.disk, log.deleted.take_due(now_ms + 500), []).run()
    assert not [name for name in world.names() if name.endswith(".deleted")]
    assert log.epochs.entries[0].start_offset == 6


def test_an_expired_log_is_empty_and_goes_on_from_its_end():
    world = World(settings(segment_bytes=300, retention_ms=1000))
    log = an_old_log(world)
    world.clock.ms = NOW_MS + 5000
    apply_retention(log, world.clock.ms)
    assert (log.start_offset, log.end_offset, log.high_watermark) == (10, 10, 10)
    append(log, batch(b"new", timestamp=world.clock.ms))
    log.close()
    assert values(world.open(clean=True)) == {10: b"new"}


def test_after_delete_records_whole_segments_below_go():
    world = World(settings(segment_bytes=300, retention_ms=-1))
    log = an_old_log(world)
    log.delete_records_before(5)
    gone = apply_retention(log, NOW_MS)
    assert [info.base_offset for info in gone] == [0, 2]
    assert log.start_offset == 5
    assert sorted(values(log)) == [5, 6, 7, 8, 9]
