"""Opening a log again after clean and unclean stops, with anything beside the data damaged."""

from __future__ import annotations

import pytest

from ottla.errors import OutOfOrderSequence
from ottla.records.builder import ProducerStamp, build_batch
from ottla.records.record import Record
from ottla.storage.log import Log
from unit.storage.logs import (
    DIRECTORY,
    NOW_MS,
    World,
    append,
    batch,
    end_transaction,
    flush,
    settings,
    transactional,
    values,
)

FIRST_LOG = f"{DIRECTORY}/{0:020d}.log"


def a_rich_log(world: World) -> Log:
    """Several segments, epochs, producers, an aborted and an open transaction."""
    log = world.open()
    for number in range(12):
        producer = ProducerStamp(7, 0, number)
        append(log, batch(b"%02d" % number * 40, producer=producer, timestamp=NOW_MS + number))
    append(log, transactional(1, 0, b"aborted"), epoch=1)
    append(log, transactional(2, 0, b"open"), epoch=1)
    end_transaction(log, 1, commit=False)
    append(log, batch(b"last" * 20, timestamp=NOW_MS + 99), epoch=2)
    log.advance_high_watermark(log.end_offset)
    return log


def state_of(log: Log) -> dict[str, object]:
    """Everything a reader or a producer could notice."""
    log.advance_high_watermark(log.end_offset)
    entry = log.producers.get(7)
    return {
        "values": values(log),
        "end": log.end_offset,
        "stable": log.last_stable_offset,
        "aborted": log.segments.aborted_transactions(0, log.end_offset),
        "epochs": log.epochs.entries,
        "last sequence": entry.last_sequence if entry else None,
        "by time": [log.offset_for_timestamp(NOW_MS + n) for n in (0, 5, 11, 50, 99, 100)],
        "latest": log.offset_of_max_timestamp(),
        "segments": [(s.base_offset, s.end_offset, s.size_bytes) for s in log.segments],
    }


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_comes_back_as_it_was(clean: bool):
    world = World(settings(segment_bytes=500))
    log = a_rich_log(world)
    before = state_of(log)
    if clean:
        log.close()
    opened = world.opened(clean=clean)
    assert state_of(opened.log) == before
    assert opened.report.bytes_cut == 0
    assert bool(opened.report.batches_verified) is not clean


AUXILIARY = (".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint")


DAMAGES = [
    (suffix, damage, clean)
    for suffix in AUXILIARY
    for damage in ("deleted", "emptied", "cut", "flipped", "garbage")
    for clean in (True, False)
    # These have no checksum: after a clean stop a flip inside an entry cannot be noticed.
    if not (clean and damage == "flipped" and suffix in (".timeindex", ".txnindex"))
]


@pytest.mark.parametrize(("suffix", "damage", "clean"), DAMAGES)
def test_damaged_files_beside_the_data_are_made_anew(suffix: str, damage: str, clean: bool):
    world = World(settings(segment_bytes=500))
    log = a_rich_log(world)
    before = state_of(log)
    log.close()
    sizes = world.index_sizes()
    names = [name for name in world.names() if name.endswith(suffix)]
    assert names
    for name in names:
        _damage(world, f"{DIRECTORY}/{name}", damage)
    assert state_of(world.open(clean=clean, sizes=sizes if clean else None)) == before


def _damage(world: World, path: str, damage: str) -> None:
    file = world.disk.open(path)
    size = file.size()
    if damage == "deleted":
        world.disk.remove(path)
    elif damage == "emptied":
        file.truncate(0)
    elif damage == "cut":
        file.truncate(max(size - 5, 0))
    elif damage == "flipped" and size:
        world.disk.damage(path, size // 2)
    elif damage == "garbage":
        file.truncate(0)
        file.write_at(0, b"\xee" * 61)


def test_a_torn_last_batch_is_cut_at_every_byte():
    world = World()
    log = world.open()
    append(log, batch(b"kept"), batch(b"torn"))
    whole = world.disk.open(FIRST_LOG).read_at(0, 1 << 20)
    first_size = len(batch(b"kept"))
    for size in range(first_size, len(whole)):
        file = world.disk.open(FIRST_LOG)
        file.truncate(0)
        file.write_at(0, whole[:size])
        reopened = world.open()
        assert values(reopened) == {0: b"kept"}
        append(reopened, batch(b"new"))
        assert values(reopened) == {0: b"kept", 1: b"new"}


def test_every_flipped_bit_of_the_last_batch_past_its_offset_is_noticed():
    world = World()
    log = world.open()
    append(log, batch(b"kept"), batch(b"flipped"))
    start = len(batch(b"kept"))
    whole = world.disk.open(FIRST_LOG).read_at(0, 1 << 20)
    for position in range(start + 16, len(whole)):
        file = world.disk.open(FIRST_LOG)
        file.truncate(0)
        file.write_at(0, whole)
        world.disk.damage(FIRST_LOG, position)
        assert values(world.open()) == {0: b"kept"}


def test_segments_after_a_bad_batch_are_dropped():
    world = World(settings(segment_bytes=300))
    log = world.open()
    for number in range(10):
        append(log, batch(b"%d" % number * 60))
    world.disk.damage(f"{DIRECTORY}/{4:020d}.log", 100)
    opened = world.opened()
    assert opened.log.end_offset == 4
    assert opened.report.segments_dropped == 2
    append(opened.log, batch(b"new"))
    assert values(opened.log)[4] == b"new"


def test_damage_below_the_recovery_point_deletes_nothing():
    world = World(settings(segment_bytes=300))
    log = world.open()
    for number in range(10):
        append(log, batch(b"%d" % number * 60))
    flush(log)
    append(log, batch(b"unflushed"))
    world.recovery_point = log.recovery_point
    before = sum(segment.size_bytes for segment in log.segments)
    world.disk.damage(f"{DIRECTORY}/{4:020d}.log", 100)
    opened = world.opened()
    assert opened.log.end_offset == 11
    assert opened.log.segments.size_bytes == before
    assert opened.report.bytes_cut == 0


def test_what_cannot_even_be_walked_below_the_recovery_point_is_set_aside():
    world = World()
    log = world.open()
    append(log, batch(b"a"), batch(b"b"), batch(b"c"))
    flush(log)
    world.recovery_point = log.recovery_point
    size = len(batch(b"a"))
    world.disk.damage(FIRST_LOG, size + 16)  # the second batch's format version
    opened = world.opened()
    assert values(opened.log) == {0: b"a"}
    (path,) = opened.report.set_aside
    assert world.disk.open(path).size() == 2 * size


def test_indexes_of_a_segment_sealed_after_its_flush_are_rebuilt_or_synced():
    for flushed_again in (False, True):
        world = World()
        log = world.open()
        append(log, batch(b"a" * 300), batch(b"b" * 300, timestamp=NOW_MS + 5))
        flush(log)
        log.roll()
        if flushed_again:
            append(log, batch(b"c"))
            flush(log)
        world.disk.lose_power(lambda n: 0)
        world.recovery_point = log.recovery_point
        found = world.open().offset_for_timestamp(NOW_MS + 1)
        assert (found.offset, found.timestamp) == (1, NOW_MS + 5)


def test_a_torn_tail_is_cut_even_if_the_stop_claims_to_have_been_clean():
    world = World()
    log = world.open()
    append(log, batch(b"kept"), batch(b"torn"))
    log.close()
    file = world.disk.open(FIRST_LOG)
    file.truncate(file.size() - 1)
    reopened = world.open(clean=True)
    append(reopened, batch(b"new"))
    assert values(reopened) == {0: b"kept", 1: b"new"}


def test_a_clean_open_reads_no_sealed_file():
    world = World(settings(segment_bytes=300))
    log = world.open()
    for number in range(30):
        append(log, batch(b"%02d" % number * 40))
    log.close()
    opened: list[str] = []
    original = world.disk.open

    def noting(path: str, *, create: bool = False):
        opened.append(path)
        return original(path, create=create)

    world.disk.open = noting  # type: ignore[method-assign]
    reopened = world.open(clean=True)
    active = reopened.segments.active.path.removesuffix(".log")
    data = {path for path in opened if path.endswith(("log", "index"))}
    assert all(path.startswith(active) for path in data)


def test_an_idempotent_retry_after_a_restart_gets_its_first_answer():
    for clean in (True, False):
        world = World()
        log = world.open()
        for number in range(3):
            append(log, batch(b"%d" % number, producer=ProducerStamp(7, 0, number)))
        if clean:
            log.close()
        reopened = world.open(clean=clean)
        again = reopened.append(batch(b"2", producer=ProducerStamp(7, 0, 2)), leader_epoch=0)
        assert (again.is_duplicate, again.base_offset) == (True, 2)
        with pytest.raises(OutOfOrderSequence):
            append(reopened, batch(b"9", producer=ProducerStamp(7, 0, 9)))
        append(reopened, batch(b"3", producer=ProducerStamp(7, 0, 3)))
        assert reopened.end_offset == 4


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_segment_whose_last_batches_the_disk_did_not_keep_ends_the_log(lost: int):
    world = World(settings(segment_bytes=100_000))
    log = world.open()
    append(log, batch(b"0"), batch(b"1"), batch(b"2"))
    batch_bytes = log.segments.active.size_bytes // 3
    log.roll()
    append(log, batch(b"3"))
    world.disk.open(FIRST_LOG).truncate((3 - lost) * batch_bytes)
    opened = world.opened()
    assert opened.log.end_offset == 3 - lost
    assert opened.report.segments_dropped == 1
    append(opened.log, batch(b"new"))
    kept = {offset: b"%d" % offset for offset in range(3 - lost)}
    assert values(opened.log) == {**kept, 3 - lost: b"new"}


def test_what_opening_cuts_off_may_come_back_until_it_is_synced():
    world = World()
    append(world.open(), batch(b"a"), batch(b"torn"))
    file = world.disk.open(FIRST_LOG)
    file.truncate(file.size() - 1)
    log = world.open()
    assert (log.end_offset, log.flusher.is_cut) == (1, True)
    assert not world.open().flusher.is_cut, "nothing was left to cut"
    world.recovery_point = 2
    assert world.open().flusher.is_cut, "it had been safe further than it goes"


@pytest.mark.parametrize("recovery_point", [0, 3, 5])
def test_a_cut_that_the_disk_did_not_keep_is_made_again(recovery_point: int):
    world = World(settings(segment_bytes=100_000))
    log = world.open()
    for number in range(5):
        append(log, batch(b"old %d" % number))
    before = world.disk.open(FIRST_LOG).read_at(0, 1 << 20)
    log.truncate_to(3)
    log.roll()
    for number in range(3, 7):
        log.append(batch(b"new %d" % number), leader_epoch=2)
    world.disk.open(FIRST_LOG).write_at(0, before)
    world.recovery_point = recovery_point
    opened = world.opened()
    assert list(values(opened.log).values()) == [
        b"old 0",
        b"old 1",
        b"old 2",
        *(b"new %d" % n for n in range(3, 7)),
    ]
    assert opened.report.bytes_cut > 0
    assert [entry.start_offset for entry in opened.log.epochs.entries] == [0, 3]


def test_all_five_remembered_batches_survive_a_clean_restart():
    world = World()
    log = world.open()
    for number in range(8):
        append(log, batch(b"%d" % number, producer=ProducerStamp(7, 0, number)))
    log.close()
    reopened = world.open(clean=True)
    for number in range(3, 8):
        again = reopened.append(batch(b"x", producer=ProducerStamp(7, 0, number)), leader_epoch=0)
        assert (again.is_duplicate, again.base_offset) == (True, number)


def test_the_checkpointed_start_offset_holds_after_a_restart():
    world = World()
    log = world.open()
    append(log, batch(b"a"), batch(b"b"), batch(b"c"))
    log.close()
    world.start_offset = 2
    assert values(world.open(clean=True)) == {2: b"c"}


@pytest.mark.parametrize("clean", [False, True])
def test_committed_readers_go_on_behind_transactions_that_were_deleted_before_a_crash(clean: bool):
    world = World()
    log = world.open()
    append(log, transactional(1, 0, b"a"))
    end_transaction(log, 1, commit=True)
    log.advance_high_watermark(2)
    log.delete_records_before(2)
    if clean:
        log.close()
    world.start_offset = 2
    again = world.open(clean=clean)
    again.advance_high_watermark(again.end_offset)
    assert (again.start_offset, again.last_stable_offset, again.end_offset) == (2, 2, 2)


def test_leftovers_of_interrupted_work_are_removed():
    world = World()
    log = world.open()
    append(log, batch(b"a"))
    log.close()
    stem = f"{DIRECTORY}/{5:020d}"
    for suffix in (".log.deleted", ".log.cleaned", ".index.swap", ".snapshot.tmp"):
        world.disk.open(stem + suffix, create=True)
    assert values(world.open(clean=True)) == {0: b"a"}
    assert not [name for name in world.names() if name.startswith(f"{5:020d}")]


def test_a_snapshot_of_what_was_truncated_is_not_believed():
    world = World()
    log = world.open()
    for number in range(4):
        append(log, batch(b"%d" % number, producer=ProducerStamp(7, 0, number)))
    log.close()
    log = world.open(clean=True)
    log.truncate_to(2)
    append(log, *(batch(b"plain") for _ in range(5)))
    assert world.open().producers.get(7).last_sequence == 1


@pytest.mark.parametrize("point", range(23))
def test_a_recovery_point_in_a_gap_that_compaction_left_costs_nothing(point: int):
    world = World()
    log = world.open()
    for offset in (0, 10, 20):
        record = Record(offset, NOW_MS, b"key", b"%d" % offset)
        log.append_as_follower(memoryview(build_batch([record], base_offset=offset)))
    world.recovery_point = point
    opened = world.opened()
    assert opened.report.bytes_cut == 0
    opened.log.advance_high_watermark(opened.log.end_offset)
    assert values(opened.log) == {0: b"0", 10: b"10", 20: b"20"}


def a_log_led_in_turn(world: World) -> Log:
    """Epochs 1 to 4: the first two lie in sealed segments, the third began in the middle of one,
    the fourth in the last. A file that holds the first is there."""
    log = world.open()
    append(log, batch(b"a"), epoch=1)
    log.close()
    log = world.open(clean=True)
    log.roll()
    append(log, batch(b"b"), epoch=2)
    append(log, batch(b"c"), epoch=3)
    log.roll()
    append(log, batch(b"d"), epoch=3)
    flush(log)
    world.recovery_point = log.recovery_point
    append(log, batch(b"e"), epoch=4)
    return log


@pytest.mark.parametrize("has_power_cut", [False, True])
def test_epochs_that_began_in_sealed_segments_survive_a_crash(has_power_cut: bool):
    world = World()
    log = a_log_led_in_turn(world)
    before = log.epochs
    if has_power_cut:
        world.disk.lose_power(lambda _: 0)
    opened = world.open()
    assert opened.end_offset == (4 if has_power_cut else 5)
    assert opened.epochs.entries == before.started_before(opened.end_offset)


def test_epochs_of_the_last_segment_are_learned_from_its_batches():
    world = World()
    log = world.open()
    for epoch in (1, 2, 5):
        append(log, batch(b"a"), epoch=epoch)
    log.assign_epoch(7)
    assert "leader-epoch-checkpoint" not in world.names()
    found = world.open().epochs.entries
    assert [(entry.epoch, entry.start_offset) for entry in found] == [(1, 0), (2, 1), (5, 2)]


def test_an_epoch_the_file_holds_and_the_log_was_cut_of_does_not_come_back():
    world = World()
    log = world.open()
    append(log, batch(b"a"), batch(b"b"), epoch=1)
    append(log, batch(b"c"), epoch=2)
    log.close()
    log = world.open(clean=True)
    log.truncate_to(1)
    append(log, batch(b"d"), epoch=3)
    found = world.open().epochs.entries
    assert [(entry.epoch, entry.start_offset) for entry in found] == [(1, 0), (3, 1)]
