"""Compaction: what stays, when it is worth it, and what a crash at any moment leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.errors import StorageFailed
from ottla.model.ids import Offset
from ottla.records.builder import ProducerStamp
from ottla.storage.compaction import CompactionStats, begin_compaction, finish_compaction
from ottla.storage.compaction_plan import CompactionMarks, group_by_size, plan_compaction
from ottla.storage.log import Log
from ottla.storage.offset_map import OffsetMap
from ottla.storage.segment import SegmentInfo
from unit.storage.logs import (
    DIRECTORY,
    NOW_MS,
    World,
    append,
    batch,
    batches_from,
    end_transaction,
    keyed,
    settings,
    values,
)

COMPACTED = {"cleanup_policy": frozenset({"compact"}), "min_cleanable_dirty_ratio": 0.0}


def a_world(**changes: object) -> World:
    return World(settings(**{**COMPACTED, "delete_retention_ms": 1000, **changes}))


def compact(log: Log, now_ms: int = NOW_MS, **more: int) -> CompactionStats | None:
    log.roll()
    log.advance_high_watermark(log.end_offset)
    job = begin_compaction(log, now_ms, **more)
    if job is None:
        return None
    job.run(lambda _: None)
    assert job.error is None
    return finish_compaction(log, job)


def keys(log: Log) -> dict[int, tuple[bytes | None, bytes | None]]:
    """Every record's key and value by its offset."""
    return {
        record.offset: (record.key, record.value)
        for found in batches_from(log, log.start_offset)
        if not found.is_control
        for record in found.records()
    }


def test_only_the_latest_record_of_each_key_stays_at_its_offset():
    log = a_world().open()
    append(log, keyed((b"a", b"1"), (b"b", b"1")), keyed((b"a", b"2")), keyed((b"c", b"1")))
    stats = compact(log)
    assert keys(log) == {1: (b"b", b"1"), 2: (b"a", b"2"), 3: (b"c", b"1")}
    assert log.end_offset == 4
    assert stats is not None
    assert stats.bytes_after < stats.bytes_before
    assert log.first_dirty_offset == 4


def test_the_active_segment_is_left_alone():
    log = a_world().open()
    append(log, keyed((b"a", b"1")), keyed((b"a", b"2")))
    log.roll()
    append(log, keyed((b"a", b"3")))
    log.advance_high_watermark(3)
    job = begin_compaction(log, NOW_MS)
    job.run(lambda _: None)
    finish_compaction(log, job)
    assert sorted(keys(log)) == [1, 2]


def test_a_compacted_log_comes_back_after_a_restart():
    world = a_world(segment_bytes=300)
    log = world.open()
    for number in range(40):
        append(log, keyed((b"%d" % (number % 7), b"%d" % number * 10)))
    compact(log)
    before = keys(log)
    assert sorted(before) == list(range(33, 40))
    append(log, keyed((b"new", b"x")))
    log.close()
    for clean in (True, False):
        assert keys(world.open(clean=clean)) == {**before, 40: (b"new", b"x")}


def test_reading_over_gaps_finds_what_comes_next():
    log = a_world(segment_bytes=300).open()
    for number in range(40):
        append(log, keyed((b"%d" % (number % 3), b"x" * 40)))
    compact(log)
    for offset in range(37):
        found = batches_from(log, offset)
        assert next(batch.base_offset for batch in found if batch.record_count) == 37


def test_a_compacted_segment_ends_where_the_next_begins():
    log = a_world(segment_bytes=300).open()
    for number in range(40):
        append(log, keyed((b"%d" % (number % 3), b"x" * 40)))
    for _ in range(2):  # what was kept for its offset alone is kept again
        compact(log)
        append(log, keyed((b"0", b"y")))
        ends = [batches_from(log, s.base_offset, end=s.end_offset)[-1] for s in log.segments]
        assert [batch.next_offset for batch in ends] == [s.end_offset for s in log.segments]


def test_a_tombstone_hides_its_key_and_goes_after_its_retention():
    log = a_world().open()
    append(log, keyed((b"a", b"1"), (b"b", b"1")), keyed((b"a", None)))
    compact(log)
    assert keys(log) == {1: (b"b", b"1"), 2: (b"a", None)}
    append(log, keyed((b"c", b"1")))
    compact(log, NOW_MS + 999)
    assert keys(log)[2] == (b"a", None)
    append(log, keyed((b"d", b"1")))
    compact(log, NOW_MS + 1000)
    assert 2 not in keys(log)
    assert sorted(keys(log)) == [1, 3, 4]


def test_timestamps_survive_a_delete_horizon():
    log = a_world().open()
    append(log, keyed((b"a", b"1"), (b"b", None), timestamp=NOW_MS - 77))
    compact(log)
    (found,) = batches_from(log, 0)
    assert found.delete_horizon_ms == NOW_MS + 1000
    assert [record.timestamp for record in found.records()] == [NOW_MS - 77] * 2
    assert found.is_intact()


def test_records_of_aborted_transactions_go_and_those_of_committed_ones_stay():
    log = a_world().open()
    append(log, keyed((b"a", b"before")))
    append(log, keyed((b"a", b"aborted"), producer=ProducerStamp(1, 0, 0, True)))
    append(log, keyed((b"b", b"committed"), producer=ProducerStamp(2, 0, 0, True)))
    end_transaction(log, 1, commit=False)
    end_transaction(log, 2, commit=True)
    compact(log)
    assert keys(log) == {0: (b"a", b"before"), 2: (b"b", b"committed")}


def test_a_marker_goes_only_after_its_records_and_its_retention():
    log = a_world().open()
    append(log, keyed((b"a", b"1"), producer=ProducerStamp(1, 0, 0, True)))
    end_transaction(log, 1, commit=True)
    append(log, keyed((b"a", b"2"), producer=ProducerStamp(1, 0, 1, True)))
    end_transaction(log, 1, commit=True)

    def markers() -> list[int]:
        return [found.base_offset for found in batches_from(log, 0) if found.is_control]

    compact(log, NOW_MS)
    assert markers() == [1, 3]
    append(log, batch(b"x", key=b"k"))
    compact(log, NOW_MS + 1000)
    assert markers() == [3]


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_stays_while_an_empty_batch_of_its_transaction_does(commit: bool):
    world = a_world()
    log = world.open()
    append(log, keyed((b"a", b"1"), producer=ProducerStamp(1, 0, 0, True)))
    end_transaction(log, 1, commit=commit)
    for number in range(3):
        append(log, keyed((b"a", b"2")))
        compact(log, NOW_MS + 1000 * number)
    log.close()
    for name in world.names():
        if name.endswith(".snapshot"):
            world.disk.remove(f"{DIRECTORY}/{name}")
    reopened = world.open(clean=True)
    reopened.advance_high_watermark(reopened.end_offset)
    assert reopened.last_stable_offset == reopened.end_offset


def test_an_open_transaction_stops_compaction_before_it():
    log = a_world().open()
    append(log, keyed((b"a", b"1")), keyed((b"a", b"2")))
    log.roll()
    append(log, keyed((b"x", b"1"), producer=ProducerStamp(1, 0, 0, True)))
    append(log, keyed((b"a", b"3")))
    compact(log)
    assert sorted(offset for offset, (key, _) in keys(log).items() if key == b"a") == [1, 3]


def test_the_last_batch_of_a_producer_stays_if_only_empty():
    world = a_world()
    log = world.open()
    append(log, keyed((b"a", b"1"), producer=ProducerStamp(7, 0, 0)))
    append(log, keyed((b"a", b"2"), producer=ProducerStamp(7, 0, 1)))
    append(log, keyed((b"a", b"3")))
    compact(log)
    kept = [(b.base_offset, b.record_count, b.producer_id) for b in batches_from(log, 0)]
    assert kept == [(1, 0, 7), (2, 1, -1)]
    log.close()
    for name in world.names():
        if name.endswith(".snapshot"):
            world.disk.remove(f"{DIRECTORY}/{name}")
    assert world.open(clean=True).producers.get(7).last_sequence == 1


def test_more_keys_than_memory_are_compacted_in_several_goes():
    log = a_world().open()
    for number in range(30):
        append(log, keyed((b"%d" % (number % 10), b"%d" % number)))
    for _ in range(20):
        if compact(log, map_entries_max=3) is None:
            break
    assert dict(keys(log).values()) == {b"%d" % key: b"%d" % (20 + key) for key in range(10)}
    assert log.first_dirty_offset == 30


def test_a_damaged_segment_is_left_as_it_is():
    world = a_world()
    log = world.open()
    append(log, keyed((b"a", b"1")), keyed((b"a", b"2")))
    log.roll()
    log.advance_high_watermark(2)
    world.disk.damage(f"{DIRECTORY}/{0:020d}.log", 70)
    before = world.disk.open(f"{DIRECTORY}/{0:020d}.log").read_at(0, 1 << 20)
    job = begin_compaction(log, NOW_MS)
    job.run(lambda _: None)
    assert job.error is not None
    assert finish_compaction(log, job) is None
    assert world.disk.open(f"{DIRECTORY}/{0:020d}.log").read_at(0, 1 << 20) == before
    assert not [name for name in world.names() if name.endswith(".cleaned")]


def test_a_compaction_overtaken_by_a_truncation_changes_nothing():
    log = a_world().open()
    append(log, keyed((b"a", b"1")), keyed((b"a", b"2")))
    log.roll()
    append(log, keyed((b"a", b"3")))
    log.roll()
    log.advance_high_watermark(3)
    job = begin_compaction(log, NOW_MS)
    job.run(lambda _: None)
    log.truncate_to(2)
    assert finish_compaction(log, job) is None
    assert sorted(keys(log)) == [0, 1]


def test_a_swap_that_fails_half_way_fences_the_log_until_it_is_opened_again():
    world = a_world()
    log = world.open()
    append(log, keyed((b"a", b"1")), keyed((b"a", b"2")))
    log.roll()
    log.advance_high_watermark(2)
    job = begin_compaction(log, NOW_MS)
    job.run(lambda _: None)
    world.disk.fail_sync = True
    with pytest.raises(StorageFailed):
        finish_compaction(log, job)
    world.disk.fail_sync = False
    assert log.is_fenced
    assert sorted(keys(world.open())) == [1]


class Crash(Exception):
    """The process dies here."""


def a_dirty_world() -> tuple[World, Log]:
    world = a_world(segment_bytes=400)
    log = world.open()
    for number in range(30):
        append(log, keyed((b"%d" % (number % 4), b"%d" % number * 15)))
    log.roll()
    log.advance_high_watermark(30)
    return world, log


@pytest.mark.parametrize("power_cut", [False, True])
def test_a_crash_before_any_change_of_a_name_loses_no_key(power_cut: bool):
    changes = 0
    while True:
        world, log = a_dirty_world()
        latest = dict(keys(log).values())
        flushed = log.begin_flush()
        flushed.run()
        log.finish_flush(flushed)
        world.recovery_point = log.recovery_point
        countdown = changes

        def crash(_: str) -> None:
            nonlocal countdown
            if countdown == 0:
                raise Crash
            countdown -= 1

        job = begin_compaction(log, NOW_MS)
        world.disk.before_change = crash
        try:
            job.run(lambda _: None)
            finish_compaction(log, job)
            finished = True
        except Crash:
            finished = False
        world.disk.before_change = None
        if power_cut:
            keeps_nothing = bool(changes % 2)
            world.disk.lose_power(lambda n, nothing=keeps_nothing: 0 if nothing else n - 1)
        reopened = world.open()
        assert dict(keys(reopened).values()) == latest
        assert reopened.end_offset == 30
        assert not [n for n in world.names() if n.endswith((".cleaned", ".swap"))]
        if finished:
            break
        changes += 1
    assert changes > 10


# --- deciding -------------------------------------------------------------------------------------


def infos(*sizes: int, timestamp: int = 0) -> list[SegmentInfo]:
    return [
        SegmentInfo(Offset(10 * n), Offset(10 * n + 10), size, timestamp)
        for n, size in enumerate(sizes)
    ]


def plan(segments: list[SegmentInfo], *, dirty: int = 0, stable: int = 1000, **changes: object):
    chosen = replace(settings(**COMPACTED), **changes)
    return plan_compaction(segments, chosen, CompactionMarks(Offset(dirty), Offset(stable)), NOW_MS)


def test_a_log_is_compacted_when_enough_of_it_is_dirty():
    segments = infos(60, 40, 5)
    assert plan(segments, dirty=10, min_cleanable_dirty_ratio=0.5) is None
    assert plan(segments, dirty=10, min_cleanable_dirty_ratio=0.4) is not None
    assert plan(segments, dirty=20, min_cleanable_dirty_ratio=0.0) is None


def test_segments_too_young_or_with_undecided_transactions_wait():
    young = infos(10, 10, 10, timestamp=NOW_MS - 5)
    assert plan(young, min_compaction_lag_ms=6) is None
    assert plan(young, min_compaction_lag_ms=4) is not None
    assert plan(infos(10, 10, 10), stable=15).end_offset == 10


def test_a_record_past_the_longest_lag_is_compacted_whatever_the_ratio():
    marks = CompactionMarks(Offset(10), Offset(1000), oldest_dirty_ms=NOW_MS - 101)
    segments = infos(1000, 1, 5)
    for lag_ms, is_due in ((101, False), (100, True)):
        chosen = settings(
            **{**COMPACTED, "min_cleanable_dirty_ratio": 1.0, "max_compaction_lag_ms": lag_ms}
        )
        assert bool(plan_compaction(segments, chosen, marks, NOW_MS)) is is_due


def test_neighbours_are_joined_while_they_fit():
    groups = group_by_size(infos(30, 30, 50, 90, 10), 100)
    assert [[info.size_bytes for info in group] for group in groups] == [[30, 30], [50], [90, 10]]


def test_an_offset_map_knows_long_and_short_keys_apart():
    offset_map = OffsetMap(2)
    assert offset_map.put(b"short", 1)
    assert offset_map.put(b"long" * 100, 2)
    assert not offset_map.put(b"third", 3)
    assert offset_map.put(b"short", 4)
    assert offset_map.latest(b"short") == 4
    assert offset_map.latest(b"long" * 100) == 2
    assert offset_map.latest(b"third") == -1


def test_a_throttle_is_told_of_every_byte():
    log = a_world().open()
    append(log, keyed((b"a", b"1")), keyed((b"a", b"2")))
    size = log.segments.size_bytes
    log.roll()
    log.advance_high_watermark(2)
    job = begin_compaction(log, NOW_MS)
    told: list[int] = []
    job.run(told.append)
    assert sum(told) == 2 * size + sum(job.sizes.values())
    assert values(log)
