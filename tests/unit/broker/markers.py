"""Markers for tests, and a transaction for them to end."""

from __future__ import annotations

from ottla.coordination.transaction.decision import WriteMarkers
from ottla.model.ids import ProducerEpoch, ProducerId, TopicPartition
from unit.broker.stage import Stage
from unit.storage.logs import batches_from, transactional

HERE = TopicPartition("topic", 0)
PRODUCER = ProducerId(9)


def markers(
    *partitions: TopicPartition, epoch: int = 1, coordinator_epoch: int = 3, version: int = 2
) -> WriteMarkers:
    return WriteMarkers(
        transactional_id="transfers",
        producer_id=PRODUCER,
        producer_epoch=ProducerEpoch(epoch),
        coordinator_epoch=coordinator_epoch,
        is_commit=True,
        partitions=partitions,
        transaction_version=version,
        serial=1,
    )


def open_transaction(stage: Stage, epoch: int = 0) -> None:
    stage.partition.append(transactional(PRODUCER, 0, b"value", epoch=epoch))


def control_batches(stage: Stage) -> int:
    return sum(each.is_control for each in batches_from(stage.partition.log, 0))
