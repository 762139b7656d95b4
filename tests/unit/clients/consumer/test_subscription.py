"""What was fetched ahead: taken by records or by batches, without what was aborted."""

from ottla.clients.consumer.record import Decoding
from ottla.clients.consumer.subscription import Chunk, PartitionState, Subscription
from ottla.model.ids import TopicPartition
from ottla.protocol.messages.fetch import AbortedTransaction
from ottla.records.batch import RecordBatch
from ottla.records.builder import BatchBuilder, ProducerStamp
from ottla.records.control import ControlType, EndTransactionMarker, marker_batch

HERE = TopicPartition("t", 0)
MANY = 1_000_000


def batch(offset: int, count: int = 3, producer: int | None = None) -> RecordBatch:
    builder = BatchBuilder()
    for number in range(offset, offset + count):
        builder.append(0, None, b"%d" % number)
    stamp = ProducerStamp() if producer is None else ProducerStamp(producer, 0, 0, True)
    return RecordBatch(memoryview(builder.build(base_offset=offset, producer=stamp)))


def marker(offset: int, producer: int, kind: ControlType) -> RecordBatch:
    data = marker_batch(
        EndTransactionMarker(kind, 0), producer_id=producer, producer_epoch=0, timestamp=0
    )
    found = RecordBatch(memoryview(data))
    found.assign(offset, 0)
    return found


def a_state(*batches: RecordBatch, aborted: tuple[tuple[int, int], ...] = ()) -> PartitionState:
    state = PartitionState(HERE)
    state.move_to(0)
    rows = [AbortedTransaction(producer_id=who, first_offset=first) for who, first in aborted]
    state.chunks.append(Chunk(list(batches), rows, 100))
    state.buffered_bytes = 100
    return state


def offsets(state: PartitionState, count: int) -> list[int]:
    return [record.offset for record in state.take(count, Decoding())]


def test_a_batch_is_handed_out_in_parts() -> None:
    state = a_state(batch(0), batch(3))

    assert offsets(state, 2) == [0, 1]
    assert state.position == 2
    assert offsets(state, 9) == [2]
    assert offsets(state, 9) == [3, 4, 5]
    assert offsets(state, 9) == []
    assert (state.position, state.buffered_bytes) == (6, 0)


def test_what_was_aborted_is_left_out_and_stepped_over() -> None:
    state = a_state(
        batch(0, producer=1),
        batch(3, producer=2),
        marker(6, 1, ControlType.ABORT),
        batch(7, producer=1),
        marker(10, 2, ControlType.COMMIT),
        aborted=((1, 0),),
    )

    assert offsets(state, 9) == [3, 4, 5]
    assert offsets(state, 9) == [7, 8, 9]
    assert offsets(state, 9) == []
    assert state.position == 11


def test_a_chunk_of_nothing_but_markers_moves_the_position() -> None:
    state = a_state(marker(0, 1, ControlType.COMMIT))

    assert offsets(state, 9) == []
    assert state.position == 1


def test_whole_batches_can_be_taken_instead() -> None:
    subscription = Subscription()
    state = a_state(batch(0), batch(3), marker(6, 1, ControlType.COMMIT))
    subscription.states = {HERE: state}
    (taken,), has_room = subscription.take_batches(MANY, MANY)

    assert (taken.where, taken.start, taken.record_count) == (HERE, 0, 6)
    assert [each.base_offset for each in taken.batches] == [0, 3]
    assert (state.position, state.buffered_bytes, has_room) == (7, 0, True)
    assert subscription.take_batches(MANY, MANY) == ([], False)


def test_records_and_batches_can_be_taken_by_turns_without_loss_or_repetition() -> None:
    state = a_state(batch(0, 10), batch(10, 10))

    assert offsets(state, 3) == [0, 1, 2]
    taken = state.take_batches(4, MANY)
    assert ([each.base_offset for each in taken.batches], taken.start, taken.end) == ([0], 3, 7)
    assert offsets(state, 2) == [7, 8]
    taken = state.take_batches(4, MANY)
    assert ([each.base_offset for each in taken.batches], taken.start, taken.end) == (
        [0, 10],
        9,
        13,
    )
    assert taken.record_count == 4
    assert offsets(state, 99) == [13, 14, 15, 16, 17, 18, 19]
    assert not state.take_batches(MANY, MANY).batches


def test_a_limit_of_bytes_ends_with_the_batch_that_reaches_it() -> None:
    state = a_state(batch(0, 10), batch(10, 10), batch(20, 10))

    size_bytes = batch(10, 10).size_bytes
    assert len(state.take_batches(MANY, 1).batches) == 1
    assert len(state.take_batches(MANY, size_bytes + 1).batches) == 2
    assert state.position == 30


def test_a_seek_forgets_what_was_fetched() -> None:
    state = a_state(batch(0))
    offsets(state, 1)
    version = state.version
    state.move_to(2)

    assert not state.has_records
    assert state.version > version
    assert offsets(state, 9) == []


def test_partitions_take_turns() -> None:
    subscription = Subscription()
    subscription.set_partitions([TopicPartition("t", number) for number in range(3)])
    for state in subscription.states.values():
        state.move_to(0)
        state.chunks.append(Chunk([batch(0, 10)], (), 100))
    firsts = [subscription.take(2, Decoding())[0][0].partition for _ in range(3)]

    assert sorted(firsts) == [0, 1, 2]
