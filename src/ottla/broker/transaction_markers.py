"""Ends transactions in partitions that this broker leads: control batches that make records count,
or not. Does not know who decided so; marker_delivery.py takes markers to their leaders."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ottla.broker.group_coordinator import OFFSETS_TOPIC, GroupCoordinator
from ottla.broker.partition import Partition
from ottla.broker.partitions import Partitions
from ottla.coordination.transaction.decision import WriteMarkers
from ottla.errors import ErrorCode, InvalidProducerEpoch, OttlaError
from ottla.model.clock import Clock
from ottla.model.ids import Offset, ProducerId, TopicPartition
from ottla.records.control import ControlType, EndTransactionMarker, marker_batch
from ottla.storage.producer_state import Origin

SECOND_VERSION: Final = 2
"""Of the transaction protocol: every transaction ends with a new epoch."""
COMMIT_SECONDS_MAX: Final = 5.0


class MarkerWriter:
    """Writes markers to the partitions on this broker."""

    def __init__(self, partitions: Partitions, groups: GroupCoordinator, clock: Clock) -> None:
        self._partitions = partitions
        self._groups = groups
        self._clock = clock
        self.observers: list[Callable[[TopicPartition, ProducerId], None]] = []
        """Told of each partition in which a producer's transaction was just ended."""

    async def attempt(self, name: TopicPartition, markers: WriteMarkers) -> ErrorCode:
        """As `write`, with what went wrong as a code."""
        try:
            await self.write(name, markers)
        except OttlaError as error:
            return error.code
        return ErrorCode.NONE

    async def write(self, name: TopicPartition, markers: WriteMarkers) -> None:
        """Ends the transaction in one partition; returns when that is committed."""
        committed = self.begin(name, markers)
        if committed is not None:
            await committed

    def begin(self, name: TopicPartition, markers: WriteMarkers) -> asyncio.Future[None] | None:
        """Writes the marker unless it is there; the wait for its commit, where one is needed."""
        partition = self._partitions.find(name.topic, name.partition)
        end_offset = self._append(partition, markers)
        if partition.is_committed(end_offset):
            return None
        return partition.committed(
            end_offset, asyncio.get_running_loop().time() + COMMIT_SECONDS_MAX
        )

    def _append(self, partition: Partition, markers: WriteMarkers) -> Offset:
        partition.check_leads()
        if markers.transaction_version >= SECOND_VERSION:
            known = partition.log.producers.get(markers.producer_id)
            if known is not None and known.epoch >= markers.producer_epoch:
                if known.epoch > markers.producer_epoch or known.transaction_start is not None:
                    # Came late: each transaction of this version ends with an epoch of its own.
                    raise InvalidProducerEpoch(
                        markers.producer_id, markers.producer_epoch, known.epoch
                    )
                # Written before. But what is not committed yet can still be lost.
                return partition.log.end_offset
        partition.check_in_sync()
        kind = ControlType.COMMIT if markers.is_commit else ControlType.ABORT
        batch = marker_batch(
            EndTransactionMarker(kind, markers.coordinator_epoch),
            producer_id=markers.producer_id,
            producer_epoch=markers.producer_epoch,
            timestamp=self._clock.now_ms(),
        )
        appended = partition.append(memoryview(batch), origin=Origin.COORDINATOR)
        name = partition.id
        for observer in self.observers:
            observer(name, markers.producer_id)
        if name.topic == OFFSETS_TOPIC:
            self._groups.end_transaction(name.partition, markers.producer_id, markers.is_commit)
        return appended.end_offset
