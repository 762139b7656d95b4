"""What cannot be read: those before it are taken, nothing passes over it, others have turns."""

from collections.abc import Callable

import pytest

from ottla.clients.consumer.record import Decoding
from ottla.clients.consumer.subscription import Chunk, PartitionState, Subscription
from ottla.clients.consumer.unreadable import (
    UnreadableBatch,
    UnreadableRecord,
    sound_batches,
)
from ottla.model.ids import TopicPartition
from ottla.records.batch import ATTRIBUTES_POSITION, HEADER_BYTES, MAGIC_POSITION, RecordBatch
from ottla.records.builder import BatchBuilder, ProducerStamp
from ottla.records.control import ControlType, EndTransactionMarker, marker_batch

HERE = TopicPartition("t", 0)
THERE = TopicPartition("t", 1)
INTEGERS = Decoding(value=int)
PLAIN = Decoding()
MANY = 1_000_000
LAST_OFFSET_DELTA_POSITION = 23


def batch_bytes(offset: int, *values: bytes) -> bytearray:
    builder = BatchBuilder()
    for value in values or (b"1", b"2", b"3"):
        builder.append(0, b"key", value, (("h", b"x"),))
    return bytearray(builder.build(base_offset=offset, producer=ProducerStamp()))


def batch(offset: int, *values: bytes) -> RecordBatch:
    return RecordBatch(memoryview(batch_bytes(offset, *values)))


def damaged(offset: int) -> RecordBatch:
    data = batch_bytes(offset)
    data[-2] ^= 1
    return RecordBatch(memoryview(data))


def unknown_codec(offset: int) -> RecordBatch:
    data = batch_bytes(offset)
    data[ATTRIBUTES_POSITION + 1] |= 7
    return RecordBatch(memoryview(data))


def fill(state: PartitionState, *batches: RecordBatch) -> PartitionState:
    state.move_to(int(batches[0].base_offset))
    state.end_offset = int(batches[-1].next_offset)
    state.chunks.append(Chunk(list(batches), (), 100))
    return state


def taken(state: PartitionState, how: Decoding = INTEGERS, count: int = MANY) -> list[int]:
    return [record.offset for record in state.take(count, how)]


@pytest.mark.parametrize("count", [1, 2, MANY])
def test_records_before_a_bad_one_are_taken_and_then_it_raises_there(count: int) -> None:
    state = fill(PartitionState(HERE), batch(0, b"1", b"2", b"BAD", b"4", b"BAD", b"6"))
    before: list[int] = []
    while len(before) < 2:
        before += taken(state, count=count)

    for _ in range(3):
        with pytest.raises(UnreadableRecord) as caught:
            state.take(count, INTEGERS)
        assert state.position == 2
    error = caught.value
    assert before == [0, 1]
    assert (error.topic, error.partition, error.offset) == ("t", 0, 2)
    record = error.record
    assert (record.key, record.value, record.headers) == (b"key", b"BAD", (("h", b"x"),))
    state.skip(error)
    assert taken(state) == [3]
    with pytest.raises(UnreadableRecord, match="t-0 at offset 4") as caught:
        state.take(count, INTEGERS)
    state.skip(caught.value)
    assert (taken(state), state.position) == ([5], 6)
    assert taken(state) == []


def test_a_skip_of_what_is_elsewhere_does_nothing() -> None:
    state = fill(PartitionState(HERE), batch(0, b"BAD", b"2", b"3"))
    with pytest.raises(UnreadableRecord) as caught:
        state.take(MANY, INTEGERS)
    state.skip(caught.value)
    state.skip(caught.value)

    assert taken(state) == [1, 2]


@pytest.mark.parametrize("spoil", [damaged, unknown_codec])
def test_batches_before_a_bad_one_are_taken_and_then_it_raises_there(
    spoil: Callable[[int], RecordBatch],
) -> None:
    how = Decoding(checks_crc=spoil is damaged)
    state = fill(PartitionState(HERE), batch(0), spoil(3), batch(6))

    assert taken(state, how) == [0, 1, 2]
    for _ in range(3):
        with pytest.raises(UnreadableBatch, match="t-0") as caught:
            state.take(MANY, how)
        assert state.position == 3
    error = caught.value
    assert (error.topic, error.partition, error.offset, error.next_offset) == ("t", 0, 3, 6)
    assert error.data == bytes(spoil(3).view)
    state.skip(error)
    assert state.position == state.fetch_offset == 6


def test_a_header_that_lies_moves_the_position_no_further_than_the_next_batch() -> None:
    data = batch_bytes(3)
    data[LAST_OFFSET_DELTA_POSITION : LAST_OFFSET_DELTA_POSITION + 4] = b"\x7f\xff\xff\x00"
    state = fill(PartitionState(HERE), batch(0), RecordBatch(memoryview(data)), batch(6))
    state.take(MANY, PLAIN)
    with pytest.raises(UnreadableBatch) as caught:
        state.take(MANY, PLAIN)

    assert (caught.value.offset, caught.value.next_offset) == (3, 6)


def test_a_damaged_marker_is_not_passed_over() -> None:
    data = bytearray(
        marker_batch(
            EndTransactionMarker(ControlType.ABORT, 0), producer_id=1, producer_epoch=0, timestamp=0
        )
    )
    marker = RecordBatch(memoryview(data))
    marker.assign(3, 0)
    data[-2] ^= 1
    state = fill(PartitionState(HERE), batch(0), marker, batch(4))

    assert taken(state, PLAIN) == [0, 1, 2]
    for _ in range(2):
        with pytest.raises(UnreadableBatch, match="marker at offset 3"):
            state.take(MANY, PLAIN)
    assert state.position == 3


@pytest.mark.parametrize(("position", "byte"), [(MAGIC_POSITION, 9), (8, 0xFF), (23, 0x80)])
def test_frames_before_a_damaged_one_are_sound(position: int, byte: int) -> None:
    data = batch_bytes(0) + batch_bytes(3) + batch_bytes(6)
    size = len(batch_bytes(0))
    data[size + position] = byte
    batches, error = sound_batches(memoryview(data))

    assert [found.base_offset for found in batches] == [0]
    assert error is not None


def test_an_answer_may_end_within_a_batch_but_not_within_the_first() -> None:
    data = bytes(batch_bytes(0))
    batches, error = sound_batches(memoryview(data + data[: HEADER_BYTES + 3]))
    assert (len(batches), error) == (1, None)

    batches, error = sound_batches(memoryview(data[:-1]))
    assert not batches
    assert "no whole batch" in str(error)


def test_damage_behind_the_chunks_is_raised_when_they_are_taken() -> None:
    state = fill(PartitionState(HERE), batch(0))
    state.damage = UnreadableBatch(HERE, (3, 4), ValueError("bad"), b"")

    assert taken(state) == [0, 1, 2]
    for _ in range(2):
        with pytest.raises(UnreadableBatch, match="t-0: bad"):
            state.take(MANY, INTEGERS)
    assert (state.position, state.has_records) == (3, True)
    state.skip(state.damage)
    assert (state.position, state.has_records) == (4, False)


def test_a_bad_partition_and_a_good_one_come_by_turns() -> None:
    subscription = Subscription()
    subscription.set_partitions([HERE, THERE])
    fill(subscription.states[HERE], batch(0, b"BAD", b"2"))
    fill(subscription.states[THERE], *(batch(3 * number) for number in range(100)))
    seen = []
    for _ in range(40):
        try:
            records, _ = subscription.take(3, INTEGERS)
            assert {record.partition for record in records} == {1}
            seen.append("records")
        except UnreadableRecord:
            seen.append("error")

    assert seen.count("records") >= 10
    assert seen.count("error") >= 10
    assert subscription.states[THERE].position == 3 * seen.count("records")


def test_a_paused_partition_does_not_raise() -> None:
    subscription = Subscription()
    subscription.set_partitions([HERE, THERE])
    fill(subscription.states[HERE], batch(0, b"BAD"))
    fill(subscription.states[THERE], batch(0))
    subscription.states[HERE].is_paused = True

    assert len(subscription.take(MANY, INTEGERS)[0]) == 3
    assert subscription.take(MANY, INTEGERS)[0] == []


def test_what_a_loop_has_not_handed_out_is_not_consumed() -> None:
    subscription = Subscription()
    subscription.set_partitions([HERE])
    fill(subscription.states[HERE], batch(0))
    subscription.iterated = iter(subscription.take(MANY, PLAIN)[0])

    next(subscription.iterated)
    assert subscription.positions()[HERE][0] == 1
    assert [record.offset for record in subscription.take_rest(MANY)] == [1, 2]
    assert subscription.positions()[HERE][0] == 3
