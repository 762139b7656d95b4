"""What a batch gets before it is sent: bytes, its place in line, a producer and a sequence.

Invariant: the sequences of a partition follow one another in the order in which its batches are
first sent, and a batch keeps its own as long as the epoch lasts.
"""

from __future__ import annotations

from typing import Protocol

from ottla.clients.producer.batch import ProducerBatch
from ottla.clients.producer.routing import PartitionQueue
from ottla.clients.producer.settings import ProducerSettings
from ottla.errors import OttlaError
from ottla.model.ids import TopicPartition
from ottla.records.batch import SEQUENCES
from ottla.records.builder import NO_PRODUCER, ProducerStamp


class Permission(Protocol):
    """What a sender asks before it sends: who it is, and whether the transaction has a place."""

    identity: ProducerStamp | None
    """None as long as it is not known."""
    is_transactional: bool
    adds_by_writing: bool

    def may_send(self, where: TopicPartition) -> bool: ...

    def request(self) -> None:
        """Lets what is missing be fetched; the sender is woken when it is there."""

    def failed(self, error: OttlaError, batch: ProducerBatch) -> None: ...

    def blocked(self) -> OttlaError | None:
        """Why nothing that waits will ever be sent; None as long as it may be."""


class Stamping:
    """Makes batches ready to go, one after the other."""

    __slots__ = ("_is_idempotent", "_level", "_permission", "_sent", "compression")

    def __init__(self, settings: ProducerSettings, permission: Permission) -> None:
        self._is_idempotent = settings.enable_idempotence
        self._permission = permission
        self._sent = 0.0
        self.compression = settings.compression
        self._level = settings.compression_level

    def prepare(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Bytes and, with idempotence, the next sequences."""
        batch.attempts += 1
        if batch.order == 0.0:
            self._sent += 1.0
            batch.order = self._sent
            queue.sent_count += 1
            batch.number = queue.sent_count
        stamp = self._stamp(queue, batch)
        if batch.data is None:
            batch.encode(self.compression, self._level, stamp)
        elif stamp != batch.stamp or not batch.has_checksum:
            batch.stamp_with(stamp)

    def _stamp(self, queue: PartitionQueue, batch: ProducerBatch) -> ProducerStamp:
        """Who sends the batch, and its sequence: the one it has, or the partition's next."""
        identity = self._permission.identity
        if not self._is_idempotent or identity is None or identity is NO_PRODUCER:
            return NO_PRODUCER
        if batch.base_sequence < 0:
            if queue.producer.producer_id < 0 or (
                self._permission.is_transactional and queue.producer is not identity
            ):
                queue.producer = identity
                queue.next_sequence = 0
            batch.base_sequence = queue.next_sequence
            queue.next_sequence = (queue.next_sequence + batch.record_count) % SEQUENCES
        producer = queue.producer
        return ProducerStamp(
            producer.producer_id,
            producer.producer_epoch,
            batch.base_sequence,
            self._permission.is_transactional,
        )
