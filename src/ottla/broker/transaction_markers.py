"""Ends transactions in partitions: control batches that make their records count, or not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from ottla.broker.group_coordinator import OFFSETS_TOPIC, GroupCoordinator
from ottla.broker.partitions import Partitions
from ottla.coordination.transaction.decision import WriteMarkers
from ottla.errors import ErrorCode, OttlaError, UnknownTopic
from ottla.model.clock import Clock
from ottla.model.ids import TopicPartition
from ottla.records.control import ControlType, EndTransactionMarker, marker_batch
from ottla.storage.producer_state import Origin

SECOND_VERSION: Final = 2
"""Of the transaction protocol: every transaction ends with a new epoch."""
RETRY_SECONDS: Final = 0.5
COMMIT_SECONDS_MAX: Final = 5.0

log = logging.getLogger(__name__)

Report = Callable[[WriteMarkers, Iterable[TopicPartition]], None]


class MarkerWriter:
    """Writes markers to the partitions on this broker."""

    def __init__(self, partitions: Partitions, groups: GroupCoordinator, clock: Clock) -> None:
        self._partitions = partitions
        self._groups = groups
        self._clock = clock
        self._running: set[asyncio.Task[None]] = set()

    def begin(self, markers: WriteMarkers, report: Report) -> None:
        """Ends the transaction in all its partitions and reports them, however long it takes."""
        task = asyncio.get_running_loop().create_task(self._write_all(markers, report))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def stop(self) -> None:
        """Leaves what is not written to the next start."""
        for task in self._running:
            task.cancel()

    async def _write_all(self, markers: WriteMarkers, report: Report) -> None:
        left = list(markers.partitions)
        while left:
            written = []
            for partition in left:
                try:
                    await self.write(partition, markers)
                except UnknownTopic:
                    written.append(partition)  # deleted: there is nothing left to end
                except OttlaError as error:
                    if error.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                        return  # a newer coordinator has taken over
                    log.warning("a marker for %s was not written: %s", partition, error)
                else:
                    written.append(partition)
            left = [partition for partition in left if partition not in written]
            if written:
                report(markers, written)
            if left:
                await asyncio.sleep(RETRY_SECONDS)

    async def write(self, name: TopicPartition, markers: WriteMarkers) -> None:
        """Ends the transaction in one partition; returns when that is committed."""
        partition = self._partitions.find(name.topic, name.partition)
        if markers.transaction_version >= SECOND_VERSION:
            known = partition.log.producers.get(markers.producer_id)
            if known is not None and known.epoch >= markers.producer_epoch:
                # Written before: each transaction of this version has its own epoch. But what is
                # not committed yet can still be lost.
                await partition.wait_committed(partition.log.end_offset, _deadline())
                return
        kind = ControlType.COMMIT if markers.is_commit else ControlType.ABORT
        batch = marker_batch(
            EndTransactionMarker(kind, markers.coordinator_epoch),
            producer_id=markers.producer_id,
            producer_epoch=markers.producer_epoch,
            timestamp=self._clock.now_ms(),
        )
        appended = partition.append(memoryview(batch), origin=Origin.COORDINATOR)
        if name.topic == OFFSETS_TOPIC:
            self._groups.end_transaction(name.partition, markers.producer_id, markers.is_commit)
        await partition.wait_committed(appended.end_offset, _deadline())


def _deadline() -> float:
    return asyncio.get_running_loop().time() + COMMIT_SECONDS_MAX
