"""The markers that are under way: which partitions of which ending have not reported yet.

Kept in memory only. After a restart all markers of an unfinished ending are written again, which a
partition takes for what it is.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ottla.coordination.transaction.decision import WriteMarkers
from ottla.coordination.transaction.transaction import Transaction
from ottla.model.ids import TopicPartition


class _Ending(msgspec.Struct):
    markers: WriteMarkers
    missing: set[TopicPartition]


class MarkersUnderWay:
    """The endings of one shard that wait for their partitions."""

    __slots__ = ("_coordinator_epoch", "_endings", "_serial")

    def __init__(self, coordinator_epoch: int) -> None:
        self._coordinator_epoch = coordinator_epoch
        self._endings: dict[str, _Ending] = {}
        self._serial = 0

    def begin(self, transaction: Transaction) -> WriteMarkers:
        """The markers of a prepared transaction, from now on waited for."""
        self._serial += 1
        markers = WriteMarkers(
            transaction.transactional_id,
            transaction.producer.producer_id,
            transaction.producer.epoch,
            self._coordinator_epoch,
            transaction.state.is_commit,
            tuple(sorted(transaction.partitions)),
            transaction.client_version,
            self._serial,
        )
        self._endings[transaction.transactional_id] = _Ending(markers, set(markers.partitions))
        return markers

    def note(self, markers: WriteMarkers, partitions: Iterable[TopicPartition]) -> bool:
        """Whether these partitions were the last that were missing.

        A report about an ending that is over, or of another coordinator, changes nothing.
        """
        ending = self._endings.get(markers.transactional_id)
        if ending is None or ending.markers != markers or not ending.missing:
            return False
        ending.missing.difference_update(partitions)
        return not ending.missing

    def is_all_written(self, transactional_id: str) -> bool:
        """An ending has all its markers, and its completion is still to be recorded."""
        ending = self._endings.get(transactional_id)
        return ending is not None and not ending.missing

    def forget(self, transactional_id: str) -> None:
        """The ending is complete, or was never written down."""
        self._endings.pop(transactional_id, None)
