"""Batches in line, as threads and the sender see them."""

from ottla.clients.metadata import PartitionInfo, TopicInfo
from ottla.clients.producer.accumulator import AHEAD_BYTES, Accumulator
from ottla.clients.producer.batch import ProducerBatch
from ottla.clients.producer.routing import Route
from ottla.clients.producer.settings import ProducerSettings
from ottla.model.ids import NO_TOPIC_ID, BrokerId
from ottla.records.builder import build_batch
from ottla.records.record import Record


def a_route() -> Route:
    return Route(TopicInfo("t", NO_TOPIC_ID, False, (PartitionInfo(0, BrokerId(1)),)))


def a_ready_made_batch() -> ProducerBatch:
    batch = ProducerBatch("t", 0, 0.0)
    batch.data = build_batch([Record(0, 0, None, b"value", ())])
    batch.record_count = 1
    return batch


def test_a_partition_is_forgotten_only_when_nothing_waits_for_it() -> None:
    accumulator, route = Accumulator(ProducerSettings(), lambda: None), a_route()
    (queue,) = route.queues
    batch = a_ready_made_batch()
    assert accumulator.enqueue(route, batch)

    accumulator.forget(queue)  # the sender saw it empty a moment ago
    assert list(accumulator.ready) == [queue]
    assert accumulator.take(queue) is batch
    accumulator.forget(queue)
    assert not accumulator.ready


def test_a_ready_made_batch_waits_for_memory_and_gives_it_back() -> None:
    first, second = a_ready_made_batch(), a_ready_made_batch()
    assert first.data is not None
    settings = ProducerSettings(buffer_memory=len(first.data) + 1)
    accumulator, route = Accumulator(settings, lambda: None), a_route()

    assert accumulator.enqueue(route, first)
    assert not accumulator.enqueue(route, second)
    accumulator.release(first)
    assert accumulator.enqueue(route, second)


def test_ready_made_batches_are_not_made_far_ahead_of_the_sender() -> None:
    accumulator, route = Accumulator(ProducerSettings(), lambda: None), a_route()
    (queue,) = route.queues

    def a_large_batch() -> ProducerBatch:
        batch = a_ready_made_batch()
        batch.data = bytearray(1_000_000)
        return batch

    taken = 0
    while accumulator.enqueue(route, a_large_batch()):
        taken += 1
    assert 1 < taken * 1_000_000 <= AHEAD_BYTES + 1_000_000
    assert accumulator.used_bytes < ProducerSettings().buffer_memory
    accumulator.take(queue)
    assert accumulator.enqueue(route, a_large_batch())


def test_small_ready_made_batches_wait_in_larger_numbers() -> None:
    accumulator, route = Accumulator(ProducerSettings(), lambda: None), a_route()
    assert all(accumulator.enqueue(route, a_ready_made_batch()) for _ in range(1000))
