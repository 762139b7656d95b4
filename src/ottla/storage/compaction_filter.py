"""Which records of a batch survive compaction, and what the batch looks like then.

Batches must be shown in the order of the log: whether a marker may go depends on whether anything
of its transaction has stayed. Does not know files.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ottla.model.ids import Offset, ProducerId
from ottla.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, RecordBatch
from ottla.records.record import RawRecord, scan_records
from ottla.records.rewrite import empty_batch, filter_records
from ottla.storage.offset_map import OffsetMap
from ottla.storage.transaction_index import AbortedTransaction, AbortedTransactions


class FilterRules(msgspec.Struct, frozen=True):
    """The fixed terms of one compaction."""

    cleaned_to: Offset
    """Records at or past this offset are not in the map, and stay."""
    now_ms: int
    delete_retention_ms: int
    last_offsets: Mapping[ProducerId, Offset | None]
    """The last offset each producer wrote data at; None for one only known by a marker."""


class BatchFilter:
    """One pass over a log."""

    def __init__(
        self, offset_map: OffsetMap, rules: FilterRules, aborted: AbortedTransactions
    ) -> None:
        self._map = offset_map
        self._rules = rules
        self._aborted = aborted
        self._with_data: set[int] = set()
        """Producers of whose current transaction something has stayed, be it an empty batch."""
        self._kept_aborted: list[AbortedTransaction] = []

    def take_aborted(self) -> list[AbortedTransaction]:
        """The aborted transactions whose marker has stayed since the last call."""
        kept, self._kept_aborted = self._kept_aborted, []
        return kept

    def apply(self, batch: RecordBatch) -> RecordBatch | None:
        """The batch as it stays: itself, a smaller one, or None."""
        if batch.attributes & CONTROL_BIT:
            return self._apply_marker(batch)
        if batch.attributes & TRANSACTIONAL_BIT and self._aborted.holds(batch):
            return self._without_records(batch)
        return self._apply_data(batch)

    def _apply_data(self, batch: RecordBatch) -> RecordBatch | None:
        kept: set[int] = set()
        has_tombstone = False
        for record in scan_records(batch.payload(), batch.shape()):
            if self._stays(record, batch):
                kept.add(record.offset)
                has_tombstone = has_tombstone or not record.has_value
        if not kept:
            return self._without_records(batch)
        if batch.attributes & TRANSACTIONAL_BIT:
            self._with_data.add(batch.producer_id)
        horizon_ms = self._new_horizon(batch) if has_tombstone else None
        if len(kept) == batch.record_count and horizon_ms is None:
            return batch
        data = filter_records(
            batch, lambda record: record.offset in kept, delete_horizon_ms=horizon_ms
        )
        assert data is not None, "something was kept"
        return RecordBatch(memoryview(data))

    def _stays(self, record: RawRecord, batch: RecordBatch) -> bool:
        if record.offset >= self._rules.cleaned_to:
            return True
        if record.key is None or record.offset < self._map.latest(record.key):
            return False
        if record.has_value:
            return True
        horizon_ms = batch.delete_horizon_ms
        return horizon_ms is None or self._rules.now_ms < horizon_ms

    def _new_horizon(self, batch: RecordBatch) -> int | None:
        """From when tombstones in here may go: set when compaction meets them first."""
        if batch.delete_horizon_ms is not None or batch.base_offset >= self._rules.cleaned_to:
            return None
        return self._rules.now_ms + self._rules.delete_retention_ms

    def _apply_marker(self, batch: RecordBatch) -> RecordBatch | None:
        producer_id = batch.producer_id
        if producer_id in self._with_data:
            self._with_data.discard(producer_id)
            return self._keep_marker(batch)
        horizon_ms = batch.delete_horizon_ms
        if horizon_ms is None:
            if batch.base_offset >= self._rules.cleaned_to or not batch.record_count:
                return self._keep_marker(batch)
            data = filter_records(batch, lambda _: True, delete_horizon_ms=self._new_horizon(batch))
            assert data is not None, "everything was kept"
            return self._keep_marker(RecordBatch(memoryview(data)))
        if self._rules.now_ms < horizon_ms or self._is_only_trace(batch):
            return self._keep_marker(batch)
        return None

    def _keep_marker(self, batch: RecordBatch) -> RecordBatch:
        transaction = self._aborted.containing(batch.producer_id, batch.base_offset)
        if transaction is not None:
            self._kept_aborted.append(transaction)
        return batch

    def _is_only_trace(self, batch: RecordBatch) -> bool:
        """Does the log know this producer by its markers alone?"""
        last_offsets = self._rules.last_offsets
        return batch.producer_id in last_offsets and last_offsets[batch.producer_id] is None

    def _without_records(self, batch: RecordBatch) -> RecordBatch | None:
        if self._rules.last_offsets.get(batch.producer_id) != batch.last_offset:
            return None
        if batch.attributes & TRANSACTIONAL_BIT:
            self._with_data.add(batch.producer_id)  # it begins a transaction, which must end
        return RecordBatch(memoryview(empty_batch(batch)))
