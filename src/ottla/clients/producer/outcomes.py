"""What an answer means for a batch and for those behind it in its partition.

With idempotence several batches of a partition are on their way at once. When one of them must be
repeated, the partition stands still until all of them have come back, and then they are sent again
in the order of their sequences, so that nothing overtakes.

Invariants:
1. A batch keeps its sequence until it is certain that no broker has stored it.
2. A new epoch begins only when nothing of the partition is on its way.
3. Every batch ends exactly once: with an offset or with an error.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Final

from ottla.clients.failures import (
    DeliveryTimedOut,
    Fenced,
    is_worth_retrying,
    refusal,
)
from ottla.clients.producer.accumulator import Accumulator
from ottla.clients.producer.batch import UNKNOWN_OFFSET, ProducerBatch
from ottla.clients.producer.metrics import ProducerCounters
from ottla.clients.producer.routing import PartitionQueue
from ottla.clients.producer.settings import ProducerSettings
from ottla.clients.producer.splitting import halves
from ottla.clients.producer.unheard import Unheard
from ottla.clients.retry import RetryPolicy
from ottla.errors import ErrorCode, OttlaError
from ottla.net.client_connection import ConnectionFailed
from ottla.protocol.messages.produce import PartitionProduceResponse
from ottla.records.batch import SEQUENCES
from ottla.records.builder import NO_PRODUCER, ProducerStamp

PRODUCER_EPOCH_MAX: Final = 32_766
_STORED: Final = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
_LOST_TRACK: Final = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID)
_FENCED: Final = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
_DOUBTFUL: Final = (
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
"""Answers after which the batch may be in the log all the same."""

_log = logging.getLogger("ottla.clients.producer")


class Outcomes:
    """Ends batches, or brings them back in line."""

    __slots__ = ("_accumulator", "_counters", "_fatal", "_retries", "_settings", "unheard")

    def __init__(
        self,
        accumulator: Accumulator,
        settings: ProducerSettings,
        retries: RetryPolicy,
        counters: ProducerCounters,
        fatal: Callable[[OttlaError, ProducerBatch], None],
    ) -> None:
        self._accumulator = accumulator
        self._settings = settings
        self._retries = retries
        self._counters = counters
        self._fatal = fatal
        self.unheard = Unheard()

    def answered(
        self, queue: PartitionQueue, batch: ProducerBatch, row: PartitionProduceResponse
    ) -> bool:
        """Takes the broker's answer; True if the picture of the cluster may be wrong."""
        if row.error_code in _STORED:
            duplicate = row.error_code != ErrorCode.NONE
            queue.in_flight.remove(batch)
            queue.known_producer_id = batch.stamp.producer_id
            queue.failures = 0
            queue.stored(batch)
            self.succeed(
                batch, UNKNOWN_OFFSET if duplicate else row.base_offset, row.log_append_time_ms
            )
            return False
        reasons = [error.batch_index_error_message for error in row.record_errors]
        reason = next((reason for reason in reasons if reason), row.error_message)
        error = refusal(row.error_code, f"partition {queue.where}", reason)
        if error.code == ErrorCode.MESSAGE_TOO_LARGE and batch.record_count > 1:
            self._split(queue, batch)
            return False
        if error.code in _LOST_TRACK:
            self._lost_track(queue, batch, error)
            return False
        if error.code in _FENCED:
            self.give_up(queue, batch, Fenced(self._settings.transactional_id, error.code))
            return False
        self.failed(queue, batch, error)
        return True

    def failed(self, queue: PartitionQueue, batch: ProducerBatch, error: OttlaError) -> None:
        """The attempt failed: once more, or no more."""
        queue.last_error = error
        if isinstance(error, ConnectionFailed) or error.code in _DOUBTFUL:
            batch.is_in_doubt = True
        if is_worth_retrying(error) and batch.attempts <= self._settings.retries:
            self._again(queue, batch)
        else:
            self.give_up(queue, batch, error)

    def _again(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        queue.in_flight.remove(batch)
        queue.retrying.append(batch)
        self._counters.batches_retried += 1

    def _lost_track(self, queue: PartitionQueue, batch: ProducerBatch, error: OttlaError) -> None:
        """The broker expected another sequence.

        Where batches before this one are missing it expected one of those, and has surely not
        stored this one. Otherwise it may be past it and have forgotten: Kafka knows only the last
        batch of a producer when it was started again.
        """
        earlier = [
            other
            for other in (*queue.in_flight, *queue.retrying)
            if other is not batch and _is_before(other, batch)
        ]
        if earlier:
            self._again(queue, batch)  # one before it must be repeated first
            return
        is_explained = min((queue.gap_order, *queue.doubts)) < batch.order
        queue.gap_order = min(queue.gap_order, batch.order)
        if is_explained or error.code == ErrorCode.UNKNOWN_PRODUCER_ID:
            if queue.forgot is None:
                batch.is_in_doubt = False
            self._again(queue, batch)
        else:
            queue.forgot = error
            self.give_up(queue, batch, error)

    def give_up(self, queue: PartitionQueue, batch: ProducerBatch, error: OttlaError) -> None:
        """Ends a batch that was sent, for good."""
        if batch in queue.in_flight:
            queue.in_flight.remove(batch)
        if batch.base_sequence >= 0:
            if batch.is_in_doubt:
                queue.doubt(batch)
            else:
                queue.gap_order = min(queue.gap_order, batch.order)
        self._fatal(error, batch)
        self.fail(batch, error)

    def expire(self, queue: PartitionQueue, now: float) -> None:
        """Ends the batches in line that are too old."""
        limit_s = self._settings.delivery_timeout_ms / 1000
        while queue.pending and queue.pending[0].created + limit_s <= now:
            batch = self._accumulator.take(queue)
            if batch is None:
                return
            last = queue.last_error if isinstance(queue.last_error, OttlaError) else None
            error = DeliveryTimedOut(queue.where, self._settings.delivery_timeout_ms, last)
            if batch.base_sequence >= 0:
                queue.doubt(batch)
            self._fatal(error, batch)
            self.fail(batch, error)

    def settle(self, queue: PartitionQueue, now: float) -> bool:
        """When all is back, puts what must be repeated in line again; True if there is some."""
        if queue.in_flight or not (queue.retrying or queue.has_gap):
            return False
        again = sorted(queue.retrying, key=_age)
        queue.retrying = []
        with self._accumulator.lock:
            queue.pending.extendleft(reversed(again))
        if queue.is_held:
            if queue.forgot is not None:
                self._give_up_unsure(queue, queue.forgot)
            with self._accumulator.lock:
                self._begin_epoch(queue)
        if again:
            queue.failures += 1
            queue.not_before = now + self._retries.wait_s(queue.failures)
        return bool(again)

    def _give_up_unsure(self, queue: PartitionQueue, error: OttlaError) -> None:
        """Ends those in line that a forgetful broker may have: sent anew they could be twice in
        the log."""
        with self._accumulator.lock:
            unsure = [batch for batch in queue.pending if batch.is_in_doubt]
            for batch in unsure:
                queue.pending.remove(batch)
        for batch in unsure:
            self._fatal(error, batch)
            self.fail(batch, error)

    def _begin_epoch(self, queue: PartitionQueue) -> None:
        """Nothing before the gap is on its way or in line any more: count anew after it."""
        queue.count_anew()
        producer = queue.producer
        # A transaction's epoch is the coordinator's to raise: it will be, after the abort.
        if producer.producer_epoch >= PRODUCER_EPOCH_MAX or producer.is_transactional:
            queue.producer = NO_PRODUCER
        elif producer.producer_id >= 0:
            queue.producer = ProducerStamp(producer.producer_id, producer.producer_epoch + 1)
            _log.info("%s: new producer epoch %s", queue.where, queue.producer.producer_epoch)
        for batch in queue.pending:
            batch.base_sequence = -1

    def _split(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """The broker takes no batch so large: two halves in its place, with its sequences."""
        first, second = halves(batch)
        middle = first.record_count
        batch.children = [(0, first), (middle, second)]
        for start, part in batch.children:
            part.attempts = batch.attempts
            if batch.base_sequence >= 0:
                part.base_sequence = (batch.base_sequence + start) % SEQUENCES
            part.encode(self._settings.compression, self._settings.compression_level)
        queue.in_flight.remove(batch)
        queue.retrying += (first, second)
        second.reserved, batch.reserved = batch.reserved, 0
        with self._accumulator.lock:
            self._accumulator.unfinished.update((first, second))

    def succeed(self, batch: ProducerBatch, base_offset: int, append_time_ms: int) -> None:
        """The broker has the batch."""
        counters = self._counters
        counters.records_sent += batch.record_count
        counters.batches_sent += 1
        counters.bytes_sent += len(batch.data or b"")
        batch.succeed(base_offset, append_time_ms)
        self._ended(batch)

    def fail(self, batch: ProducerBatch, error: OttlaError) -> None:
        """The batch is given up."""
        self._counters.records_failed += batch.record_count
        batch.fail(error)
        self.unheard.add(batch, error)
        self._ended(batch)

    def fail_all(self, error: OttlaError) -> None:
        """Gives up every batch that is not done."""
        with self._accumulator.lock:
            unfinished = list(self._accumulator.unfinished)
            for route in self._accumulator.routes.values():
                for queue in route.queues:
                    if queue.open is not None:
                        queue.open.close()
                    queue.open = None
                    queue.pending.clear()
                    queue.in_flight.clear()
                    queue.retrying.clear()
            self._accumulator.lingering.clear()
            self._accumulator.ready.clear()
        for batch in unfinished:
            if not batch.is_done:
                self.fail(batch, error)

    def fail_pending(self, error: OttlaError) -> None:
        """Gives up what is not on its way: of a transaction that will be aborted."""
        accumulator = self._accumulator
        accumulator.close_aged(math.inf, is_flushing=True)
        for queue in list(accumulator.ready):
            while (batch := accumulator.take(queue)) is not None:
                if batch.base_sequence >= 0:
                    queue.doubt(batch)
                self.fail(batch, error)

    def _ended(self, batch: ProducerBatch) -> None:
        self._accumulator.release(batch)
        parent = batch.parent
        if parent is not None and all(part.is_done for _, part in parent.children):
            parent.callbacks = []
            parent.succeed(UNKNOWN_OFFSET)
            self._ended(parent)


def _age(batch: ProducerBatch) -> float:
    return batch.order


def _is_before(one: ProducerBatch, other: ProducerBatch) -> bool:
    return one.order < other.order
