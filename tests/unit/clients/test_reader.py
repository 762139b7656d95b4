"""Which records of a fetched piece of the log a reader gets to see."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.clients.reader import read_records
from ottla.errors import CorruptBatch
from ottla.model.ids import Offset
from ottla.protocol.messages.fetch import AbortedTransaction
from ottla.records.batch import CONTROL_BIT
from ottla.records.builder import BatchBuilder, ProducerStamp, build_batch
from ottla.records.record import Record

ABORT, COMMIT = 0, 1


def a_batch(first: int, count: int, producer_id: int = -1) -> bytes:
    """Records whose value is their offset; of a transaction if a producer is named."""
    stamp = ProducerStamp(producer_id, 0, 0, is_transactional=True)
    return bytes(
        build_batch(
            [Record(0, 1000, None, b"%d" % (first + n)) for n in range(count)],
            base_offset=first,
            **({"producer": stamp} if producer_id >= 0 else {}),
        )
    )


def a_marker(offset: int, producer_id: int, kind: int) -> bytes:
    builder = BatchBuilder()
    builder.append(1000, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0))
    stamp = ProducerStamp(producer_id, 0, -1, is_transactional=True)
    return bytes(builder.build(base_offset=offset, producer=stamp, attributes=CONTROL_BIT))


def read(log: bytes, position: int, aborted: list[AbortedTransaction] | None = None):
    records, next_offset = read_records(memoryview(log), Offset(position), aborted or [])
    return [record.offset for record in records], next_offset


@given(st.lists(st.integers(1, 5), max_size=5), st.integers(0, 30))
def test_records_before_the_position_are_left_out(counts: list[int], position: int) -> None:
    log, end = b"", 0
    for count in counts:
        log += a_batch(end, count)
        end += count
    offsets, next_offset = read(log, position)
    assert offsets == list(range(min(position, end), end))
    assert next_offset == max(position, end)


def test_a_batch_cut_off_by_the_size_limit_is_left_for_the_next_fetch() -> None:
    whole = a_batch(0, 2)
    for cut in range(1, len(whole)):
        assert read(whole + a_batch(2, 3)[:cut], 0) == ([0, 1], 2)


def test_control_records_move_the_position_and_are_not_shown() -> None:
    log = a_batch(0, 2, producer_id=7) + a_marker(2, 7, COMMIT)
    assert read(log, 0) == ([0, 1], 3)


def test_aborted_records_are_left_out_up_to_their_marker_and_not_after() -> None:
    log = (
        a_batch(0, 2, producer_id=7)
        + a_batch(2, 2, producer_id=8)
        + a_marker(4, 7, ABORT)
        + a_batch(5, 2, producer_id=7)
        + a_marker(7, 8, COMMIT)
        + a_marker(8, 7, COMMIT)
    )
    aborted = [AbortedTransaction(producer_id=7, first_offset=0)]
    assert read(log, 0, aborted) == ([2, 3, 5, 6], 9)


def test_a_producer_may_abort_twice_in_one_fetch() -> None:
    log = (
        a_batch(0, 1, producer_id=7)
        + a_marker(1, 7, ABORT)
        + a_batch(2, 1, producer_id=7)
        + a_marker(3, 7, ABORT)
        + a_batch(4, 1)
    )
    aborted = [
        AbortedTransaction(producer_id=7, first_offset=2),
        AbortedTransaction(producer_id=7, first_offset=0),
    ]
    assert read(log, 0, aborted) == ([4], 5)


def test_a_damaged_batch_is_an_error_and_not_a_wrong_record() -> None:
    log = bytearray(a_batch(0, 2))
    log[-1] ^= 1
    with pytest.raises(CorruptBatch):
        read(bytes(log), 0)
