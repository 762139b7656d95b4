"""What the log remembers of producers: duplicates, gaps, epochs, expiry, snapshots."""

from __future__ import annotations

from struct import pack

import pytest
from crc32c import crc32c

from ottla.errors import ErrorCode, InvalidProducerEpoch, OutOfOrderSequence, RequestFailed
from ottla.records.batch import RecordBatch
from ottla.records.builder import ProducerStamp
from ottla.storage import producer_snapshot
from ottla.storage.disk import read_file, replace_file
from ottla.storage.log import Log
from ottla.storage.producer_state import SEQUENCE_MAX, Origin, ProducerState
from unit.storage.logs import (
    DIRECTORY,
    NOW_MS,
    World,
    a_log,
    append,
    batch,
    end_transaction,
    marker,
    settings,
    transactional,
)


def send(log: Log, sequence: int, *values: bytes, epoch: int = 0):
    stamp = ProducerStamp(7, epoch, sequence)
    return log.append(batch(*values, producer=stamp), leader_epoch=0)


def test_a_repeated_batch_is_answered_as_the_first_time_and_not_written():
    log = a_log()
    send(log, 0, b"a", b"b")
    send(log, 2, b"c")
    again = send(log, 0, b"a", b"b")
    assert (again.is_duplicate, again.base_offset, again.end_offset) == (True, 0, 2)
    assert log.end_offset == 3


def test_five_batches_are_remembered_and_a_sixth_is_not():
    log = a_log()
    for sequence in range(6):
        send(log, sequence, b"x")
    for sequence in range(1, 6):
        assert send(log, sequence, b"x").base_offset == sequence
    with pytest.raises(OutOfOrderSequence):
        send(log, 0, b"x")


def test_a_gap_and_an_overlap_are_refused():
    log = a_log()
    send(log, 0, b"a", b"b")
    for sequence in (1, 3):
        with pytest.raises(OutOfOrderSequence) as caught:
            send(log, sequence, b"x")
        assert (caught.value.expected, caught.value.received) == (2, sequence)
    assert log.end_offset == 2


def test_an_unknown_producer_may_begin_with_any_sequence():
    log = a_log()
    send(log, 41, b"a")
    send(log, 42, b"b")
    assert log.end_offset == 2


def test_sequences_begin_again_after_the_largest():
    log = a_log()
    send(log, SEQUENCE_MAX - 1, b"a", b"b", b"c")  # the last one's sequence is 0
    again = send(log, SEQUENCE_MAX - 1, b"a", b"b", b"c")
    assert again.is_duplicate
    send(log, 1, b"d")
    log = a_log()
    send(log, SEQUENCE_MAX, b"a")
    send(log, 0, b"b")
    assert log.end_offset == 2


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_zero():
    log = a_log()
    send(log, 0, b"a", epoch=3)
    with pytest.raises(InvalidProducerEpoch):
        send(log, 1, b"b", epoch=2)
    with pytest.raises(OutOfOrderSequence):
        send(log, 1, b"b", epoch=4)
    send(log, 0, b"b", epoch=4)
    with pytest.raises(InvalidProducerEpoch):
        send(log, 1, b"c", epoch=3)


def test_a_producer_writes_nothing_beside_its_open_transaction():
    log = a_log()
    append(log, transactional(7, 0, b"a"))
    with pytest.raises(RequestFailed) as caught:
        send(log, 1, b"b")
    assert caught.value.code is ErrorCode.INVALID_TXN_STATE


def test_a_marker_with_a_newer_epoch_fences_the_older():
    log = a_log()
    append(log, transactional(7, 0, b"a"))
    log.append(marker(7, commit=False, epoch=1), leader_epoch=0, origin=Origin.COORDINATOR)
    with pytest.raises(InvalidProducerEpoch):
        append(log, transactional(7, 1, b"late"))
    append(log, transactional(7, 0, b"b", epoch=1))


def test_a_marker_without_a_transaction_changes_no_offset():
    log = a_log()
    append(log, transactional(7, 0, b"a"))
    end_transaction(log, 7, commit=False)
    end_transaction(log, 7, commit=False)
    log.advance_high_watermark(log.end_offset)
    assert log.last_stable_offset == log.end_offset
    assert len(log.segments.aborted_transactions(0, log.end_offset)) == 1


def test_a_coordinator_writes_into_a_transaction_without_sequences():
    log = a_log()
    for number in range(3):
        stamp = ProducerStamp(7, 0, is_transactional=True)
        data = batch(b"%d" % number, b"and more", producer=stamp)
        log.append(data, leader_epoch=0, origin=Origin.COORDINATOR)
    log.advance_high_watermark(log.end_offset)
    assert (log.end_offset, log.last_stable_offset) == (6, 0)
    (restored,) = producer_snapshot.decode(producer_snapshot.encode(log.producers.entries()))
    assert restored.batches[-1] == log.producers.get(7).batches[-1]
    end_transaction(log, 7, commit=False)
    assert len(log.segments.aborted_transactions(0, 6)) == 1


def test_silent_producers_are_forgotten_but_not_with_an_open_transaction():
    log = a_log()
    send(log, 0, b"a")
    append(log, transactional(8, 0, b"b"))
    assert log.producers.expire(NOW_MS + 999, 1000) == 0
    assert log.producers.expire(NOW_MS + 1000, 1000) == 1
    assert log.producers.get(7) is None
    assert log.producers.get(8) is not None


def test_a_follower_takes_what_its_leader_took_even_with_a_gap():
    log = a_log()
    send(log, 0, b"a")
    gap = RecordBatch(batch(b"b", producer=ProducerStamp(7, 0, 50)))
    gap.assign(1, 0)
    log.append_as_follower(gap.view)
    assert log.end_offset == 2
    assert log.producers.get(7).last_sequence == 50


def test_a_snapshot_holds_each_producers_state():
    log = a_log()
    send(log, 0, b"a", b"b")
    send(log, 2, b"c", b"d")
    append(log, transactional(8, 0, b"e"))
    end_transaction(log, 9, commit=True)
    data = producer_snapshot.encode(log.producers.entries())
    entries = producer_snapshot.decode(data)
    assert entries is not None
    state = ProducerState()
    state.restore(entries)
    last = state.get(7).last_batch
    assert (last.base_sequence, last.last_sequence) == (2, 3)
    assert (last.base_offset, last.last_offset) == (2, 3)
    assert state.first_unstable_offset == 4
    assert state.get(9).last_batch is None
    assert producer_snapshot.encode(state.entries()) == data


def test_a_snapshot_holds_all_batches_that_a_producer_may_repeat():
    log = a_log()
    for sequence in range(7):
        send(log, sequence, b"a")
    append(log, transactional(8, 0, b"e"))
    remembered = {entry.producer_id: list(entry.batches) for entry in log.producers.entries()}
    assert len(remembered[7]) == 5
    data = producer_snapshot.encode(log.producers.entries())
    read = producer_snapshot.decode(data)
    assert {entry.producer_id: list(entry.batches) for entry in read} == remembered
    assert producer_snapshot.encode(read) == data


def test_batches_missing_in_kafkas_snapshots_are_found_in_the_log_across_segments():
    world = World(settings(segment_bytes=150))
    log = world.open()
    for sequence in range(8):
        send(log, sequence, b"a")
    assert len(list(log.segments)) > 3
    log.close()
    for name in world.names():
        if name.endswith(".snapshot"):
            path = f"{DIRECTORY}/{name}"
            entries = producer_snapshot.decode(read_file(world.disk, path))
            for entry in entries:
                last = entry.batches[-1]
                entry.batches.clear()
                entry.batches.append(last)
            replace_file(world.disk, path, producer_snapshot.encode(entries), sync=True)
    reopened = world.open(clean=True)
    assert [send(reopened, sequence, b"a").is_duplicate for sequence in range(3, 8)] == [True] * 5
    assert reopened.end_offset == 8


def test_what_stands_behind_a_snapshots_producers_must_be_their_batches():
    log = a_log()
    send(log, 0, b"a")
    send(log, 1, b"b")
    whole = producer_snapshot.encode(log.producers.entries())
    for body in (whole[6:] + b"\0", whole[6:-1], whole[6:-32]):
        assert producer_snapshot.decode(whole[:2] + pack(">I", crc32c(body)) + body) is None


def test_a_snapshot_is_laid_out_as_kafka_does():
    log = a_log()
    send(log, 0, b"a", b"b")
    data = producer_snapshot.encode(log.producers.entries())
    assert data[:2] == b"\x00\x01"
    assert len(data) == 2 + 4 + 4 + 46
    assert int.from_bytes(data[10:18], "big") == 7


def test_every_damaged_byte_of_a_snapshot_is_noticed():
    log = a_log()
    send(log, 0, b"a")
    data = producer_snapshot.encode(log.producers.entries())
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x40
        assert producer_snapshot.decode(bytes(damaged)) is None
        assert producer_snapshot.decode(data[:position]) is None
