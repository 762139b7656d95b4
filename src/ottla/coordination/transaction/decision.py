"""What the transaction coordinator wants done: a decision that may also ask for markers."""

from __future__ import annotations

from typing import Final

import msgspec

from ottla.coordination.decision import NewRecord, Reply, TimerChange
from ottla.model.ids import ProducerEpoch, ProducerId, TopicPartition


class WriteMarkers(msgspec.Struct, frozen=True):
    """End a transaction in these partitions, and report with this very value that it is done."""

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    coordinator_epoch: int
    is_commit: bool
    partitions: tuple[TopicPartition, ...]
    transaction_version: int
    serial: int
    """Tells the markers of one ending from those of the next with the same producer and epoch."""


class TransactionDecision(msgspec.Struct, frozen=True):
    """Everything that follows from one event.

    The replies wait until all records of the shard up to here are committed, also those of earlier
    decisions: a reply may rest on a record that was replayed and can still be lost. The markers
    wait for the same; written earlier, they would announce an outcome that is not decided.
    """

    records: tuple[NewRecord, ...] = ()
    replies: tuple[Reply, ...] = ()
    timers: tuple[TimerChange, ...] = ()
    markers: tuple[WriteMarkers, ...] = ()


NOTHING: Final = TransactionDecision()
