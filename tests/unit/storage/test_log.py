"""The log: appending, reading, marks, rolling, truncating."""

from __future__ import annotations

import pytest

from ottla.errors import (
    CorruptBatch,
    ErrorCode,
    InvalidRecord,
    InvalidTimestamp,
    OffsetOutOfRange,
    RecordListTooLarge,
    RecordTooLarge,
    RequestFailed,
    StorageFailed,
)
from ottla.records.batch import RecordBatch, split
from ottla.records.compression import Compression
from ottla.storage.disk import read_region
from ottla.storage.log import Log
from ottla.storage.producer_state import Origin
from ottla.storage.simulated_disk import SimulatedFile
from unit.storage.logs import (
    DIRECTORY,
    NOW_MS,
    World,
    a_log,
    append,
    batch,
    batches_from,
    end_transaction,
    flush,
    marker,
    settings,
    transactional,
    values,
)


def test_a_new_log_is_empty():
    log = a_log()
    assert (log.start_offset, log.end_offset, log.high_watermark) == (0, 0, 0)
    assert log.segments.size_bytes == 0
    assert log.read(0, bytes_max=100, end=0) is None


def test_appended_batches_get_consecutive_offsets_and_the_leaders_epoch():
    log = a_log()
    first = log.append(batch(b"a", b"b"), leader_epoch=3)
    second = log.append(batch(b"c"), leader_epoch=3)
    assert (first.base_offset, first.end_offset) == (0, 2)
    assert (second.base_offset, second.end_offset) == (2, 3)
    assert [(b.base_offset, b.leader_epoch) for b in batches_from(log, 0)] == [(0, 3), (2, 3)]
    assert values(log) == {0: b"a", 1: b"b", 2: b"c"}


def test_the_senders_bytes_are_stamped_in_place():
    log = a_log()
    append(log, batch(b"a"))
    sent = batch(b"b")
    append(log, sent)
    assert RecordBatch(sent).base_offset == 1


def test_bytes_that_cannot_be_written_to_are_copied():
    log = a_log()
    append(log, batch(b"a"))
    append(log, memoryview(bytes(batch(b"b"))))
    assert values(log) == {0: b"a", 1: b"b"}


def test_several_batches_of_a_client_at_once_are_refused_as_kafka_does():
    log = a_log()
    both = bytearray(batch(b"a", b"b")) + batch(b"c")
    with pytest.raises(InvalidRecord):
        log.append(memoryview(both), leader_epoch=0)
    assert log.end_offset == 0


def test_a_damaged_batch_is_refused_and_changes_nothing():
    log = a_log()
    damaged = batch(b"abc")
    damaged[-1] ^= 1
    with pytest.raises(CorruptBatch):
        append(log, damaged)
    assert log.end_offset == 0


def test_a_batch_larger_than_the_topic_accepts_is_refused():
    with pytest.raises(RecordTooLarge):
        append(a_log(max_message_bytes=100), batch(b"x" * 200))


def test_records_larger_than_a_segment_are_refused():
    with pytest.raises(RecordListTooLarge):
        append(a_log(segment_bytes=150), batch(b"x" * 200))


def test_a_client_may_not_write_markers():
    with pytest.raises(InvalidRecord):
        append(a_log(), marker(7, commit=True))


def test_nothing_at_all_is_refused():
    with pytest.raises((CorruptBatch, InvalidRecord)):
        append(a_log(), memoryview(bytearray()))


def test_a_timestamp_from_the_far_future_is_refused():
    with pytest.raises(InvalidTimestamp):
        append(a_log(message_timestamp_after_max_ms=1000), batch(timestamp=NOW_MS + 1001))


def test_a_timestamp_from_the_far_past_is_refused():
    with pytest.raises(InvalidTimestamp):
        append(a_log(message_timestamp_before_max_ms=1000), batch(timestamp=NOW_MS - 1001))


def test_log_append_time_stamps_every_record():
    log = a_log(message_timestamp_type="LogAppendTime")
    appended = log.append(batch(b"a", timestamp=5), leader_epoch=0)
    assert appended.append_time_ms == NOW_MS
    (found,) = batches_from(log, 0)
    assert found.is_intact()
    assert [record.timestamp for record in found.records()] == [NOW_MS]


def test_a_compacted_topic_needs_keys():
    log = a_log(cleanup_policy=frozenset({"compact"}))
    with pytest.raises(InvalidRecord):
        append(log, batch(b"no key"))
    append(log, batch(b"v", key=b"k"))
    assert log.end_offset == 1


def test_a_topic_with_a_codec_recompresses():
    log = a_log(compression_type="zstd")
    append(log, batch(b"a" * 100, compression=Compression.GZIP), batch(b"b"))
    assert [b.compression for b in batches_from(log, 0)] == [Compression.ZSTD] * 2
    assert values(log) == {0: b"a" * 100, 1: b"b"}


# --- reading --------------------------------------------------------------------------------------


def test_a_read_begins_with_the_batch_that_holds_the_offset():
    log = a_log()
    append(log, batch(b"a", b"b", b"c"), batch(b"d"))
    region = log.read(1, bytes_max=1 << 20, end=log.end_offset)
    assert region is not None
    assert [b.base_offset for b in split(memoryview(read_region(region)))] == [0, 3]


def test_a_read_never_reaches_the_end_it_was_given():
    log = a_log()
    append(log, batch(b"a"), batch(b"b", b"c"), batch(b"d"))
    assert [b.base_offset for b in batches_from(log, 0, end=3)] == [0, 1]
    assert [b.base_offset for b in batches_from(log, 0, end=2)] == [0]
    assert log.read(3, bytes_max=1000, end=3) is None


def test_a_read_gives_the_first_batch_whole_even_if_it_is_too_large():
    log = a_log()
    append(log, batch(b"x" * 500), batch(b"y"))
    region = log.read(0, bytes_max=10, end=2)
    assert region is not None
    assert len(region) == len(batch(b"x" * 500))
    assert log.read(0, bytes_max=10, end=2, at_least_one=False) is None


@pytest.mark.parametrize("tail", [0, 600])
def test_a_read_ends_with_a_whole_batch_where_the_index_knows_one(tail: int):
    log = a_log()
    size = len(batch(b"x" * 500))
    append(log, *(batch(b"x" * 500) for _ in range(10 + tail)))  # far from the end, or near it
    for whole in (1, 2, 5):
        region = log.read(2, bytes_max=whole * size + size // 2, end=log.end_offset)
        assert region is not None
        assert (region.position, len(region)) == (2 * size, whole * size)
    region = log.read(2, bytes_max=3 * size, end=log.end_offset)
    assert region is not None
    assert len(region) == 3 * size


def test_a_read_is_cut_inside_a_batch_rather_than_to_less_than_half_of_what_was_asked_for():
    log = a_log(index_interval_bytes=1 << 20)
    size = len(batch(b"x" * 500))
    append(log, *(batch(b"x" * 500) for _ in range(10)))
    region = log.read(2, bytes_max=5 * size + 1, end=log.end_offset)
    assert region is not None
    assert len(region) == 5 * size + 1, "the index knows of no batch in there"
    log = a_log()
    append(log, batch(b"x" * 500), batch(b"x" * 5000), batch(b"x"))
    region = log.read(0, bytes_max=5000, end=log.end_offset)
    assert region is not None
    assert len(region) == 5000, "the first batch alone would be little"


def test_a_read_outside_of_the_log_says_what_the_log_has():
    log = a_log()
    append(log, batch(b"a"))
    for offset in (-1, 2):
        with pytest.raises(OffsetOutOfRange) as caught:
            log.read(offset, bytes_max=10, end=1)
        assert (caught.value.start, caught.value.end) == (0, 1)


def test_reads_near_the_end_and_far_from_it_find_the_same():
    log = a_log()
    for number in range(2000):
        append(log, batch(b"%d" % number, b"second"))
    for offset in [*range(0, 4000, 97), 3999]:
        (first, *_) = batches_from(log, offset)
        assert first.base_offset == offset // 2 * 2


def test_a_large_batch_is_found_by_one_look_at_the_file(monkeypatch: pytest.MonkeyPatch):
    log = a_log()
    append(log, *(batch(b"x" * 500, b"y") for _ in range(10)))
    log.roll()
    looks = []
    read_at = SimulatedFile.read_at

    def looking(file: SimulatedFile, position: int, size: int) -> bytes:
        looks.append(position)
        return read_at(file, position, size)

    monkeypatch.setattr(SimulatedFile, "read_at", looking)
    size = len(batch(b"x" * 500, b"y"))
    for offset in (5, 10, 19):
        looks.clear()
        region = log.read(offset, bytes_max=1, end=log.end_offset)
        assert region is not None
        assert looks == [region.position] == [offset // 2 * size]


def test_an_entry_of_the_index_that_lies_is_not_believed():
    log = a_log()
    append(log, *(batch(b"x" * 500, b"y") for _ in range(10)))
    log.roll()
    for damaged in (1, -1, len(batch(b"x" * 500, b"y"))):
        index = log.segments.first.indexes().offsets
        index._positions[4] += damaged
        for offset in range(20):
            assert batches_from(log, offset)[0].base_offset == offset // 2 * 2


def test_an_offset_that_was_compacted_away_is_read_from_the_next_batch_there_is():
    log = a_log()
    for number in range(6):
        append(log, batch(b"x" * 500, b"%d" % number))
    gone = rewritten_without(log, 2)
    assert gone == [2, 3]
    for offset, base in ((1, 0), (2, 4), (3, 4), (4, 4)):
        assert batches_from(log, offset)[0].base_offset == base


def rewritten_without(log: Log, number: int) -> list[int]:
    """Takes the batch out of the data file, as compaction would; the offsets that are gone."""
    log.roll()
    segment = log.segments.first
    batches = batches_from(log, 0, end=segment.end_offset)
    left = b"".join(bytes(one.view) for one in batches if one.base_offset != number)
    segment.file().truncate(0)
    segment.file().write_at(0, left)
    segment.size_bytes = len(left)
    segment.rebuild_indexes()
    return list(range(batches[number // 2].base_offset, batches[number // 2].next_offset))


def test_a_read_goes_on_in_the_next_segment():
    log = a_log()
    append(log, batch(b"a"))
    log.roll()
    append(log, batch(b"b"))
    assert values(log) == {0: b"a", 1: b"b"}


# --- rolling --------------------------------------------------------------------------------------


def test_a_full_segment_is_followed_by_a_new_one():
    world = World(settings(segment_bytes=400))
    log = world.open()
    for number in range(20):
        append(log, batch(b"%03d" % number * 20))
    assert len(log.segments) > 5
    assert all(segment.size_bytes <= 400 for segment in log.segments)
    assert len(values(log)) == 20
    snapshots = [name for name in world.names() if name.endswith(".snapshot")]
    assert len(snapshots) == len(log.segments) - 1


def test_a_segment_rolls_when_its_records_are_older_than_segment_ms():
    log = a_log(segment_ms=1000, segment_jitter_ms=0)
    append(log, batch(timestamp=NOW_MS), batch(timestamp=NOW_MS + 1000))
    assert len(log.segments) == 1
    append(log, batch(timestamp=NOW_MS + 1001))
    assert len(log.segments) == 2


def test_a_segment_rolls_before_offsets_exceed_what_its_index_can_say():
    log = a_log()
    first = RecordBatch(batch(b"a"))
    first.assign(0, 0)
    log.append_as_follower(first.view)
    far = RecordBatch(batch(b"b"))
    far.assign(2**31 + 5, 0)
    log.append_as_follower(far.view)
    assert [segment.base_offset for segment in log.segments] == [0, 1]
    with pytest.raises(OffsetOutOfRange):
        log.append_as_follower(first.view)


# --- time -----------------------------------------------------------------------------------------


def test_a_record_is_found_by_its_time_across_segments():
    log = a_log(segment_bytes=300)
    for number in range(30):
        append(log, batch(b"x" * 50, timestamp=NOW_MS + 10 * number))
    for number in range(30):
        found = log.offset_for_timestamp(NOW_MS + 10 * number - 5)
        assert found is not None
        assert (found.offset, found.timestamp) == (number, NOW_MS + 10 * number)
    assert log.offset_for_timestamp(NOW_MS + 291) is None


def test_the_first_record_with_the_latest_time_is_found():
    log = a_log(segment_bytes=300)
    for timestamp in (5, 9, 7, 9, 3, 8):
        append(log, batch(b"x" * 50, timestamp=timestamp))
    found = log.offset_of_max_timestamp()
    assert found is not None
    assert (found.offset, found.timestamp) == (1, 9)
    assert a_log().offset_of_max_timestamp() is None


# --- marks ----------------------------------------------------------------------------------------


def test_the_high_watermark_never_goes_back_nor_past_the_end():
    log = a_log()
    append(log, batch(b"a", b"b"))
    log.advance_high_watermark(99)
    assert log.high_watermark == 2
    log.advance_high_watermark(1)
    assert log.high_watermark == 2


def test_the_last_stable_offset_waits_for_the_earliest_open_transaction():
    log = a_log()
    append(log, batch(b"a"), transactional(1, 0, b"b"), transactional(2, 0, b"c"), batch(b"d"))
    log.advance_high_watermark(4)
    assert log.last_stable_offset == 1
    end_transaction(log, 1, commit=True)
    log.advance_high_watermark(5)
    assert log.last_stable_offset == 2
    end_transaction(log, 2, commit=False)
    assert log.last_stable_offset == 2
    log.advance_high_watermark(6)
    assert log.last_stable_offset == 6


def test_the_last_stable_offset_waits_until_the_marker_is_committed():
    log = a_log()
    append(log, transactional(1, 0, b"a"))
    end_transaction(log, 1, commit=True)
    log.advance_high_watermark(1)
    assert log.last_stable_offset == 0
    log.advance_high_watermark(2)
    assert log.last_stable_offset == 2


def test_aborted_transactions_are_listed_for_the_offsets_they_cover():
    log = a_log()
    append(log, transactional(1, 0, b"a"), batch(b"b"))
    log.roll()
    end_transaction(log, 1, commit=False)
    append(log, batch(b"c"))
    (aborted,) = log.segments.aborted_transactions(0, 1)
    assert (aborted.producer_id, aborted.first_offset, aborted.last_offset) == (1, 0, 2)
    assert aborted.last_stable_offset == 3
    assert log.segments.aborted_transactions(3, 4) == []


def test_a_marker_of_an_older_coordinator_is_refused():
    log = a_log()
    append(log, transactional(1, 0, b"a"))
    log.append(marker(1, commit=True, coordinator=5), leader_epoch=0, origin=Origin.COORDINATOR)
    with pytest.raises(RequestFailed) as caught:
        log.append(marker(1, commit=True, coordinator=4), leader_epoch=0, origin=Origin.COORDINATOR)
    assert caught.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_an_epoch_ends_where_the_next_begins():
    log = a_log()
    append(log, batch(b"a"), batch(b"b"), epoch=1)
    append(log, batch(b"c"), epoch=4)
    assert log.epoch_end(1).end_offset == 2
    assert (log.epoch_end(3).epoch, log.epoch_end(3).end_offset) == (1, 2)
    assert log.epoch_end(4).end_offset == 3
    assert log.epoch_end(5) is None


# --- truncation and deletion ----------------------------------------------------------------------


def test_truncation_drops_every_batch_that_reaches_the_offset():
    log = a_log()
    append(log, batch(b"a"), batch(b"b", b"c"), batch(b"d"))
    log.advance_high_watermark(4)
    log.truncate_to(2)
    assert (log.end_offset, log.high_watermark) == (1, 1)
    append(log, batch(b"e"))
    assert values(log) == {0: b"a", 1: b"e"}


def test_truncation_goes_back_over_segments():
    log = a_log(segment_bytes=300)
    for number in range(20):
        append(log, batch(b"%02d" % number * 30), epoch=number // 10)
    log.truncate_to(5)
    assert values(log) == {n: b"%02d" % n * 30 for n in range(5)}
    assert log.epochs.latest == 0
    append(log, batch(b"new"), epoch=2)
    assert values(log)[5] == b"new"


def test_truncation_reopens_a_transaction_whose_marker_is_cut_off():
    log = a_log()
    append(log, transactional(1, 0, b"a"))
    end_transaction(log, 1, commit=False)
    log.advance_high_watermark(2)
    log.truncate_to(1)
    assert log.segments.aborted_transactions(0, 1) == []
    assert log.last_stable_offset == 0


def test_truncation_below_the_first_segment_begins_anew():
    log = a_log()
    append(log, batch(b"a"))
    log.roll()
    append(log, batch(b"b"))
    log.restart_at(100)
    assert (log.start_offset, log.end_offset, log.high_watermark) == (100, 100, 100)
    append(log, batch(b"c"))
    assert values(log) == {100: b"c"}


def test_deleted_records_are_out_of_range():
    log = a_log()
    append(log, batch(b"a"), batch(b"b"), batch(b"c"))
    with pytest.raises(OffsetOutOfRange):
        log.delete_records_before(1)
    log.advance_high_watermark(3)
    assert log.delete_records_before(2) == 2
    assert log.delete_records_before(1) == 2
    with pytest.raises(OffsetOutOfRange):
        log.read(1, bytes_max=10, end=3)
    assert values(log) == {2: b"c"}


# --- a failing disk -------------------------------------------------------------------------------


def test_a_full_disk_refuses_appends_until_there_is_space_again():
    world = World()
    log = world.open()
    append(log, batch(b"a"))
    world.disk.space_bytes = 30
    with pytest.raises(StorageFailed) as caught:
        append(log, batch(b"b"))
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not log.is_fenced
    world.disk.space_bytes = None
    append(log, batch(b"c"))
    assert values(log) == {0: b"a", 1: b"c"}
    assert world.open().end_offset == 2


def test_a_log_whose_tail_cannot_be_cut_takes_no_more_writes():
    world = World()
    log = world.open()
    append(log, batch(b"a"))
    world.disk.space_bytes, world.disk.fail_truncate = 30, True
    with pytest.raises(StorageFailed):
        append(log, batch(b"b"))
    world.disk.space_bytes, world.disk.fail_truncate = None, False
    assert log.is_fenced
    with pytest.raises(StorageFailed):
        append(log, batch(b"c"))
    assert values(log) == {0: b"a"}
    reopened = world.open()
    append(reopened, batch(b"d"))
    assert values(reopened) == {0: b"a", 1: b"d"}


def test_a_full_disk_at_a_roll_leaves_the_log_usable():
    world = World(settings(segment_bytes=300))
    log = world.open()
    append(log, batch(b"a" * 150))
    world.disk.space_bytes = 0
    with pytest.raises(StorageFailed):
        append(log, batch(b"b" * 150))
    world.disk.space_bytes = None
    append(log, batch(b"c" * 150))
    assert len(log.segments) == 2
    assert len(values(log)) == 2


def test_an_aborted_transaction_that_cannot_be_noted_fences_the_log():
    world = World()
    log = world.open()
    append(log, transactional(1, 0, b"a"))
    world.disk.space_bytes = len(marker(1, commit=False))
    with pytest.raises(StorageFailed):
        end_transaction(log, 1, commit=False)
    assert log.is_fenced
    world.disk.space_bytes = None
    assert len(world.open().segments.aborted_transactions(0, 5)) == 1


def test_a_file_that_cannot_be_read_is_a_storage_failure():
    world = World(settings(segment_bytes=300))
    log = world.open()
    for number in range(10):
        append(log, batch(b"%d" % number * 60))
    for name in world.names():
        if name.startswith(f"{0:020d}"):
            world.disk.remove(f"{DIRECTORY}/{name}")
    log.segments.first.release()
    with pytest.raises(StorageFailed):
        log.read(0, bytes_max=100, end=10)


# --- flushing -------------------------------------------------------------------------------------


def test_the_recovery_point_moves_only_by_a_finished_flush():
    log = a_log()
    append(log, batch(b"a"))
    job = log.begin_flush()
    append(log, batch(b"b"))
    job.run()
    assert log.recovery_point == 0
    log.finish_flush(job)
    assert log.recovery_point == 1


def test_a_failed_sync_fences_the_log():
    world = World()
    log = world.open()
    append(log, batch(b"a"))
    world.disk.fail_sync = True
    with pytest.raises(StorageFailed):
        flush(log)
    world.disk.fail_sync = False
    assert log.recovery_point == 0
    with pytest.raises(StorageFailed):
        append(log, batch(b"b"))


def test_a_truncation_during_a_flush_voids_it():
    log = a_log()
    append(log, batch(b"a"), batch(b"b"))
    job = log.begin_flush()
    log.truncate_to(1)
    append(log, batch(b"c"))
    job.run()
    log.finish_flush(job)
    assert log.recovery_point <= 1


def test_a_flush_is_due_by_count_and_by_age():
    log = a_log(flush_messages=3, flush_ms=1000)
    append(log, batch(b"a", b"b"))
    assert not log.needs_flush(NOW_MS + 999)
    assert log.needs_flush(NOW_MS + 1000)
    append(log, batch(b"c"))
    assert log.needs_flush(NOW_MS)
    flush(log)
    assert not log.needs_flush(NOW_MS + 10_000)


def test_what_was_cut_off_may_come_back_until_a_flush_that_saw_the_cut_is_done():
    world = World()
    log = world.open()
    append(log, batch(b"a"), batch(b"old"))
    flush(log)
    before = log.begin_flush()
    log.truncate_to(1)
    after = log.begin_flush()
    assert (before.is_after_cut, after.is_after_cut) == (False, True)
    for job in (before, after):
        assert log.flusher.is_cut
        job.run()
        log.finish_flush(job)
        log.flusher.cut_is_safe(job, log.segments)
    assert not log.flusher.is_cut
    world.disk.lose_power(lambda n: 0)
    assert values(world.open()) == {0: b"a"}


def test_a_stop_syncs_a_cut_below_what_was_safe_already():
    world = World()
    log = world.open()
    append(log, batch(b"a"))
    log.close()
    log = world.open(clean=True)
    append(log, batch(b"old"))
    flush(log)
    log.truncate_to(1)
    log.close()
    world.disk.lose_power(lambda n: 0)
    assert values(world.open(clean=True)) == {0: b"a"}


def test_flushed_records_survive_a_power_cut_and_segments_rolled_before_do_too():
    world = World(settings(segment_bytes=300))
    log = world.open()
    for number in range(10):
        append(log, batch(b"%d" % number * 60))
    expected = values(log)
    flush(log)
    append(log, batch(b"unflushed"))
    world.disk.lose_power(lambda n: 0)
    world.recovery_point = log.recovery_point
    assert values(world.open()) == expected
