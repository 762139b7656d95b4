"""What the log remembers of each producer: its last batches, its epoch, its open transaction.

Invariants:
1. `check` changes nothing; `record` is called only for batches that are in the log, in its order.
2. The last five batches of a producer are remembered, so that a retry gets its first answer again.
3. `first_unstable_offset` is the first offset of the earliest transaction that is open, or whose
   marker is not below the high watermark yet.

Does not know files; producer_snapshot.py writes and reads what is kept here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from enum import Enum
from typing import Final

import msgspec

from ottla.errors import (
    ErrorCode,
    InvalidProducerEpoch,
    OutOfOrderSequence,
    RequestFailed,
)
from ottla.model.ids import NO_TIMESTAMP, Offset, ProducerId
from ottla.records.batch import (
    CONTROL_BIT,
    NO_SEQUENCE,
    SEQUENCES,
    TRANSACTIONAL_BIT,
    RecordBatch,
)
from ottla.records.control import ControlType, read_marker
from ottla.storage.batch_scan import ScannedHeader
from ottla.storage.transaction_index import AbortedTransaction

BATCHES_REMEMBERED: Final = 5
SEQUENCE_MAX: Final = SEQUENCES - 1
NO_COORDINATOR_EPOCH: Final = -1


class Origin(Enum):
    """Who hands a batch to the log, and so how far it is trusted."""

    CLIENT = 1
    CHECKED_CLIENT = 4
    """The same, where a thread has looked at the records already."""
    COORDINATOR = 2
    REPLICATION = 3
    """The leader has checked it; or it comes from the log itself, at recovery."""


class RememberedBatch(msgspec.Struct, frozen=True):
    """Enough of a batch to recognise it when it comes again."""

    base_sequence: int
    last_sequence: int
    base_offset: Offset
    last_offset: Offset
    timestamp: int


class EndedTransaction(msgspec.Struct, frozen=True):
    """A transaction whose marker has been written."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    is_aborted: bool


class ProducerEntry:
    """One producer. `batches` holds RememberedBatch fields as tuples: appends fill it."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "producer_id",
        "transaction_start",
    )

    def __init__(self, producer_id: ProducerId, epoch: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.batches: deque[tuple[int, int, int, int, int]] = deque(maxlen=BATCHES_REMEMBERED)
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        self.last_timestamp = NO_TIMESTAMP
        self.transaction_start: Offset | None = None

    @property
    def last_sequence(self) -> int:
        return self.batches[-1][1] if self.batches else NO_SEQUENCE

    @property
    def last_batch(self) -> RememberedBatch | None:
        if not self.batches:
            return None
        base_sequence, last_sequence, base, last, timestamp = self.batches[-1]
        return RememberedBatch(base_sequence, last_sequence, Offset(base), Offset(last), timestamp)


class ProducerState:
    """All producers of one log."""

    __slots__ = (
        "_ongoing",
        "_producers",
        "_unreplicated",
        "first_unstable_offset",
        "is_complete",
    )

    def __init__(self) -> None:
        self._producers: dict[ProducerId, ProducerEntry] = {}
        self._ongoing: dict[ProducerId, Offset] = {}
        self._unreplicated: list[EndedTransaction] = []
        self.first_unstable_offset: Offset | None = None
        self.is_complete = True
        """False where only the last batch of each producer is known, from a snapshot."""

    def __len__(self) -> int:
        return len(self._producers)

    def entries(self) -> list[ProducerEntry]:
        return list(self._producers.values())

    def get(self, producer_id: ProducerId) -> ProducerEntry | None:
        return self._producers.get(producer_id)

    # --- asking ----------------------------------------------------------------------------------

    def check(self, batch: RecordBatch) -> RememberedBatch | None:
        """The batch this one repeats, or None where it is new; raises where it is not allowed."""
        entry = self._producers.get(batch.producer_id)
        if entry is None:
            return None
        if batch.attributes & CONTROL_BIT:
            _check_marker(entry, batch)
            return None
        epoch = batch.producer_epoch
        first = batch.base_sequence
        if epoch == entry.epoch:
            batches = entry.batches
            last_known = batches[-1][1] if batches else NO_SEQUENCE
            if first != last_known + 1 and first >= 0:  # a coordinator sends none
                duplicate = _find(entry, batch)
                if duplicate is not None:
                    return duplicate
                if not (first == 0 and last_known == SEQUENCE_MAX):
                    raise OutOfOrderSequence(batch.producer_id, last_known + 1, first)
        elif epoch < entry.epoch:
            raise InvalidProducerEpoch(batch.producer_id, epoch, entry.epoch)
        elif first > 0:
            raise OutOfOrderSequence(batch.producer_id, 0, first)
        if entry.transaction_start is not None and not batch.attributes & TRANSACTIONAL_BIT:
            raise RequestFailed(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {batch.producer_id} wrote outside of its open transaction",
            )
        return None

    def aborted(self, ended: EndedTransaction) -> AbortedTransaction:
        """The index entry for a transaction that has just ended by an abort."""
        # What will be stable once the marker is replicated: all before the next open transaction.
        stable = min(self._ongoing.values(), default=Offset(ended.last_offset + 1))
        return AbortedTransaction(ended.producer_id, ended.first_offset, ended.last_offset, stable)

    # --- learning --------------------------------------------------------------------------------

    def record(self, batch: RecordBatch | ScannedHeader) -> EndedTransaction | None:
        """Take in a batch that is in the log now. Returns the transaction a marker ended, if any.

        Of a data batch the header is enough; a marker must be the whole batch.
        """
        producer_id = ProducerId(batch.producer_id)
        entry = self._producers.get(producer_id)
        if entry is None:
            entry = self._producers[producer_id] = ProducerEntry(producer_id, batch.producer_epoch)
        elif entry.epoch != batch.producer_epoch:
            entry.epoch = batch.producer_epoch
            entry.batches.clear()
        if batch.attributes & CONTROL_BIT:
            assert isinstance(batch, RecordBatch), "a marker's record must be read"
            return self._record_marker(entry, batch)
        first = batch.base_sequence
        base = Offset(batch.base_offset)
        delta = batch.last_offset_delta
        timestamp = batch.max_timestamp
        last = first + delta
        if first < 0:
            last = NO_SEQUENCE
        elif last > SEQUENCE_MAX:
            last -= SEQUENCES
        entry.batches.append((first, last, base, base + delta, timestamp))
        entry.last_timestamp = timestamp
        if batch.attributes & TRANSACTIONAL_BIT and entry.transaction_start is None:
            entry.transaction_start = base
            self._ongoing[producer_id] = base
            self._find_first_unstable()
        return None

    def _record_marker(self, entry: ProducerEntry, batch: RecordBatch) -> EndedTransaction | None:
        marker = read_marker(batch)
        if marker is None:
            return None
        entry.coordinator_epoch = max(entry.coordinator_epoch, marker.coordinator_epoch)
        entry.last_timestamp = batch.max_timestamp
        start, entry.transaction_start = entry.transaction_start, None
        if start is None:
            return None
        del self._ongoing[entry.producer_id]
        ended = EndedTransaction(
            entry.producer_id, start, batch.last_offset, is_aborted=marker.type is ControlType.ABORT
        )
        self._unreplicated.append(ended)
        self._find_first_unstable()
        return ended

    def advance_high_watermark(self, high_watermark: int) -> None:
        """Transactions whose marker lies below the high watermark are settled for good."""
        if self._unreplicated:
            self._unreplicated = [
                ended for ended in self._unreplicated if ended.last_offset >= high_watermark
            ]
            self._find_first_unstable()

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers silent for too long, but never one with an open transaction."""
        expired = [
            entry.producer_id
            for entry in self._producers.values()
            if entry.transaction_start is None and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self._producers[producer_id]
        return len(expired)

    def restore(self, entries: Iterable[ProducerEntry]) -> None:
        """Begin with what a snapshot held."""
        self.is_complete = False
        for entry in entries:
            self._producers[entry.producer_id] = entry
            if entry.transaction_start is not None:
                self._ongoing[entry.producer_id] = entry.transaction_start
        self._find_first_unstable()

    def remember_earlier(self, batch: ScannedHeader) -> None:
        """Put back a batch older than those known (a snapshot keeps only each producer's last)."""
        entry = self._producers.get(ProducerId(batch.producer_id))
        if (
            entry is None
            or entry.epoch != batch.producer_epoch
            or not entry.batches
            or len(entry.batches) == BATCHES_REMEMBERED
            or entry.batches[0][2] <= batch.base_offset
            or batch.base_sequence < 0
        ):
            return
        first = batch.base_sequence
        last = (first + batch.last_offset_delta) % SEQUENCES
        entry.batches.appendleft(
            (first, last, batch.base_offset, batch.last_offset, batch.max_timestamp)
        )

    def _find_first_unstable(self) -> None:
        candidates = list(self._ongoing.values())
        candidates += [ended.first_offset for ended in self._unreplicated]
        self.first_unstable_offset = min(candidates, default=None)


def _find(entry: ProducerEntry, batch: RecordBatch) -> RememberedBatch | None:
    first, last = batch.base_sequence, batch.last_sequence
    for base_sequence, last_sequence, base, end, timestamp in entry.batches:
        if base_sequence == first and last_sequence == last:
            return RememberedBatch(first, last, Offset(base), Offset(end), timestamp)
    return None


def _check_marker(entry: ProducerEntry, batch: RecordBatch) -> None:
    """Raise where a coordinator may not end this producer's transaction with this marker."""
    marker = read_marker(batch)
    if marker is None:
        return
    if batch.producer_epoch < entry.epoch:
        raise InvalidProducerEpoch(batch.producer_id, batch.producer_epoch, entry.epoch)
    if marker.coordinator_epoch < entry.coordinator_epoch:
        raise RequestFailed(
            ErrorCode.TRANSACTION_COORDINATOR_FENCED,
            f"a marker of coordinator epoch {marker.coordinator_epoch} came after one of"
            f" {entry.coordinator_epoch}",
        )
