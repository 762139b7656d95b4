"""The aborted transactions that end in one segment, so that committed readers can skip them.

Thirty-four bytes an entry: int16 version, then int64 producer id, first offset, last offset (the
marker's) and the last stable offset at the time the marker was written. Entries are written
through at once: there are few, and a reader's correctness hangs on them.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

import msgspec

from ottla.model.ids import Offset, ProducerId
from ottla.records.batch import RecordBatch
from ottla.storage.disk import Disk, read_file

_ENTRY: Final = struct.Struct(">hqqqq")
ENTRY_BYTES: Final = _ENTRY.size
VERSION: Final = 0


class AbortedTransaction(msgspec.Struct, frozen=True):
    """Records of this producer in [first_offset, last_offset] are not to be delivered."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    last_stable_offset: Offset


class AbortedTransactions:
    """Aborted transactions of many producers, to ask which of them a batch belongs to."""

    def __init__(self, transactions: Iterable[AbortedTransaction]) -> None:
        self._by_producer: dict[int, list[AbortedTransaction]] = {}
        for transaction in sorted(transactions, key=lambda entry: entry.first_offset):
            self._by_producer.setdefault(transaction.producer_id, []).append(transaction)

    def containing(self, producer_id: int, offset: int) -> AbortedTransaction | None:
        """The producer's aborted transaction that spans `offset`."""
        transactions = self._by_producer.get(producer_id)
        if transactions is None:
            return None
        index = bisect_right(transactions, offset, key=lambda entry: entry.first_offset) - 1
        if index < 0 or transactions[index].last_offset < offset:
            return None
        return transactions[index]

    def holds(self, batch: RecordBatch) -> bool:
        """Is this transactional batch part of an aborted transaction?"""
        return self.containing(batch.producer_id, batch.base_offset) is not None


class TransactionIndex:
    """The entries of one segment, in the order their markers were written."""

    __slots__ = ("entries",)

    def __init__(self, entries: list[AbortedTransaction] | None = None) -> None:
        self.entries: list[AbortedTransaction] = entries or []

    def append(self, transaction: AbortedTransaction, disk: Disk, path: str) -> None:
        file = disk.open(path, create=True)
        try:
            file.write_at(len(self.entries) * ENTRY_BYTES, _encode(transaction))
        finally:
            file.close()
        self.entries.append(transaction)

    def truncate_to(self, offset: int) -> bool:
        """Forget transactions whose marker stands at or past `offset`; True if there were any."""
        keep = [entry for entry in self.entries if entry.last_offset < offset]
        changed = len(keep) != len(self.entries)
        self.entries = keep
        return changed

    def overlapping(self, start: int, end: int) -> list[AbortedTransaction]:
        """Those with a record in [start, end)."""
        return [
            entry
            for entry in self.entries
            if entry.last_offset >= start and entry.first_offset < end
        ]

    def write(self, disk: Disk, path: str) -> None:
        """Write the whole file anew; no entries, no file."""
        if not self.entries:
            disk.remove(path)
            return
        file = disk.open(path, create=True)
        try:
            file.truncate(0)
            file.write_at(0, b"".join(map(_encode, self.entries)))
        finally:
            file.close()

    @classmethod
    def load(cls, disk: Disk, path: str, base_offset: int) -> TransactionIndex | None:
        """The file's entries (no file: none), or None where the content cannot be right."""
        data = read_file(disk, path)
        if data is None:
            return cls()
        if len(data) % ENTRY_BYTES:
            return None
        entries = []
        for version, producer_id, first, last, stable in _ENTRY.iter_unpack(data):
            if version < VERSION or last < base_offset or last < first:
                return None
            entries.append(
                AbortedTransaction(
                    ProducerId(producer_id), Offset(first), Offset(last), Offset(stable)
                )
            )
        return cls(entries)


def _encode(entry: AbortedTransaction) -> bytes:
    return _ENTRY.pack(
        VERSION, entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset
    )
