"""One data file of a log with its indexes. Knows no other segments, no clock and no network.

Invariants:
1. Bytes at or past `size_bytes` in the file belong to nobody: a failed write may leave some there
   until they are cut.
2. Offsets in the file grow; `end_offset` is past the last, by one or (after compaction) more.
3. A sealed segment never changes, save that its indexes may be rebuilt from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

import msgspec

from ottla.model.ids import NO_TIMESTAMP, Offset, Position
from ottla.records.batch import RecordBatch
from ottla.storage import file_names
from ottla.storage.batch_scan import ScannedHeader, read_batch, span_at, walk
from ottla.storage.disk import Bytes, File
from ottla.storage.index_cache import SegmentIndexes
from ottla.storage.offset_index import RELATIVE_OFFSET_MAX, OffsetIndex
from ottla.storage.segment_place import SegmentPlace, index_batches
from ottla.storage.segment_tail import OFFSET_MAX, SegmentTail
from ottla.storage.time_index import TimeIndex
from ottla.storage.transaction_index import AbortedTransaction, TransactionIndex

POSITION_MAX: Final = 2**31 - 1


class SegmentInfo(msgspec.Struct, frozen=True):
    """A segment as retention and compaction see it."""

    base_offset: Offset
    end_offset: Offset
    size_bytes: int
    max_timestamp: int
    """Of its batches; where none has one, the time it was last written to."""


class TimestampedOffset(msgspec.Struct, frozen=True):
    """A record found by its time."""

    timestamp: int
    offset: Offset
    leader_epoch: int


class Segment:
    """Append to the end, read from anywhere."""

    __slots__ = (
        "_active",
        "_bytes_since_entry",
        "_first_timestamp",
        "_latest",
        "_latest_offset",
        "_log",
        "_tail",
        "_transactions",
        "base_offset",
        "end_offset",
        "index_interval_bytes",
        "modified_ms",
        "place",
        "size_bytes",
        *("untrusted_end", "untrusted_start"),
    )

    def __init__(self, place: SegmentPlace, base_offset: int, *, index_interval_bytes: int) -> None:
        self.base_offset = Offset(base_offset)
        self.end_offset = Offset(base_offset)
        self.size_bytes = 0
        self.untrusted_start = self.untrusted_end = 0
        """Between them stands what an earlier run left, and this one has not looked at."""
        self.modified_ms = 0
        self.index_interval_bytes = index_interval_bytes
        self.place = place
        self._log = place.files.file(place.path(base_offset, file_names.LOG))
        self._active: SegmentIndexes | None = None
        self._transactions: TransactionIndex | None = None
        self._bytes_since_entry = 0
        self._first_timestamp: int | None = None
        self._latest: int | None = None
        """The latest timestamp; None until it has been looked up."""
        self._latest_offset = Offset(-1)
        self._tail = SegmentTail(OFFSET_MAX)  # knows nothing until batches are appended

    # --- its files -------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        return self._log.path

    @property
    def is_active(self) -> bool:
        return self._active is not None

    def file(self) -> File:
        return self._log.open()

    def paths(self) -> list[str]:
        """Where its files are, the data file first, whether or not each exists."""
        return [self.place.path(self.base_offset, s) for s in file_names.SEGMENT_SUFFIXES]

    def create(self, now_ms: int) -> None:
        """Make the empty data file of a new active segment."""
        self._log.open(create=True)
        self.modified_ms = now_ms
        self._active = SegmentIndexes(OffsetIndex(self.base_offset), TimeIndex(self.base_offset))
        self._transactions = TransactionIndex()
        self._latest = NO_TIMESTAMP
        self._tail = SegmentTail(self.base_offset)

    def activate(self) -> None:
        """Make a segment found on disk the one that is appended to."""
        indexes = self.indexes()
        self.place.index_cache.forget(self.path)
        self._active = indexes
        if self._latest is None:
            self._learn_latest(indexes.times.last)
        self._bytes_since_entry = self.size_bytes - indexes.offsets.last_position
        self._tail = SegmentTail(self.end_offset)
        self.transactions()

    def seal(self, now_ms: int) -> None:
        """No more appends: complete and write the indexes, free what only appends need."""
        self.write_indexes()
        self.modified_ms = now_ms
        if self._active is not None:
            self.place.index_cache.put(self.path, self._active)
        self._active = None
        self._tail = SegmentTail(self.end_offset)

    def write_indexes(self) -> None:
        """Bring the index files up to date with what was appended."""
        if self._active is not None:
            if self._latest is not None:
                self._active.times.append(self._latest, self._latest_offset)
            self.place.write_indexes(self.base_offset, self._active)

    def release(self) -> None:
        """Let go of the descriptor and of everything kept in memory for this segment."""
        self._log.release()
        self.place.index_cache.forget(self.path)

    # --- appending -------------------------------------------------------------------------------

    def append(self, data: Bytes, batches: list[RecordBatch]) -> None:
        """Write `data`, which holds exactly `batches`. On OSError nothing is changed here."""
        position = self.size_bytes
        self._log.open().write_at(position, data)
        if not position:
            self._first_timestamp = batches[0].max_timestamp
        last_offset = -1
        for batch in batches:
            size_bytes = batch.size_bytes
            last_offset = batch.base_offset + batch.last_offset_delta
            if batch.max_timestamp > self._latest:  # type: ignore[operator]  # known when active
                self._latest = batch.max_timestamp
                self._latest_offset = Offset(last_offset)
            if self._bytes_since_entry > self.index_interval_bytes:
                self._add_entry(last_offset, position)
            self._bytes_since_entry += size_bytes
            self._tail.add(last_offset + 1, position)
            position += size_bytes
        self.size_bytes = position
        self.end_offset = Offset(last_offset + 1)

    def _add_entry(self, last_offset: int, position: int) -> None:
        indexes = self._active
        assert indexes is not None, "a sealed segment is not appended to"
        assert self._latest is not None, "an active segment knows its latest timestamp"
        indexes.offsets.append(last_offset, position)
        indexes.times.append(self._latest, self._latest_offset)
        self._bytes_since_entry = 0

    def append_aborted(self, transaction: AbortedTransaction) -> None:
        path = self.place.path(self.base_offset, file_names.TRANSACTION_INDEX)
        self.transactions().append(transaction, self.place.disk, path)

    def cut_unknown_tail(self) -> None:
        """After a failed write: remove whatever it left behind."""
        self._log.open().truncate(self.size_bytes)

    @property
    def index_entries(self) -> int:
        return len(self._active.offsets) if self._active is not None else 0

    # --- looking up ------------------------------------------------------------------------------

    def indexes(self) -> SegmentIndexes:
        """Both indexes; rebuilt from the data where a file is missing or cannot be right."""
        if self._active is not None:
            return self._active
        cache = self.place.index_cache
        indexes = cache.get(self.path)
        if indexes is None:
            indexes = self.place.load_indexes(self.base_offset, self.size_bytes)
            if indexes is None:
                return self.rebuild_indexes()
            cache.put(self.path, indexes)
        return indexes

    def rebuild_indexes(self) -> SegmentIndexes:
        """Make the offset and time indexes anew from the data, and write them."""
        indexes = index_batches(
            self.file(),
            self.size_bytes,
            self.base_offset,
            interval_bytes=self.index_interval_bytes,
        )
        self.place.write_indexes(self.base_offset, indexes)
        self._learn_latest(indexes.times.last)
        if self._active is not None:
            self._active = indexes
        else:
            self.place.index_cache.put(self.path, indexes)
        return indexes

    def transactions(self) -> TransactionIndex:
        """The aborted transactions that end here."""
        if self._transactions is None:
            self._transactions = self.place.load_transactions(self.base_offset)
        return self._transactions

    def set_transactions(self, index: TransactionIndex) -> None:
        self._transactions = index
        path = self.place.path(self.base_offset, file_names.TRANSACTION_INDEX)
        index.write(self.place.disk, path)

    def locate(self, offset: int) -> tuple[Position, int]:
        """Where the first batch that ends after `offset` begins, and its size.

        The segment's size and 0 where no batch does.
        """
        tail = self._tail
        if offset >= tail.start_offset:
            position, size_bytes = tail.locate(offset, self.size_bytes)
            return Position(position), size_bytes
        # Large batches are all in the index, and so one look at the data is enough.
        entry = self.indexes().offsets.entry_from(offset)
        if entry is not None:
            found = span_at(self.file(), entry.position, self.size_bytes)
            if found and found.base_offset <= offset <= found.last_offset == entry.last_offset:
                return entry.position, found.size_bytes
        for header in self.headers_from(offset):
            if header.last_offset >= offset:
                return Position(header.position), header.size_bytes
        return Position(self.size_bytes), 0

    def headers_from(self, offset: int) -> Iterator[ScannedHeader]:
        """Headers from somewhere at or before the batch that holds `offset`, to the end."""
        file = self.file()
        entry = self.indexes().offsets.entry_before(offset)
        if entry is None:
            return walk(file, 0, self.size_bytes)
        headers = walk(file, entry.position, self.size_bytes)
        first = next(headers, None)
        if first is None or first.last_offset != entry.last_offset:
            # The index lies, so it is not used again: the data decides.
            self.rebuild_indexes()
            return walk(file, 0, self.size_bytes)
        return chain((first,), headers)

    # --- time ------------------------------------------------------------------------------------

    @property
    def max_timestamp(self) -> int:
        """The latest timestamp of its batches, or -1."""
        if self._latest is None:
            cached = self.place.index_cache.get(self.path)
            try:
                last = cached.times.last if cached else self.place.last_time_entry(self.base_offset)
            except FileNotFoundError:
                last = self.indexes().times.last
            self._learn_latest(last)
        assert self._latest is not None, "it has just been looked up"
        return self._latest

    def _learn_latest(self, last: tuple[int, Offset] | None) -> None:
        self._latest, self._latest_offset = last or (NO_TIMESTAMP, Offset(-1))

    @property
    def first_timestamp(self) -> int:
        """The time its first batch carries, from which its age counts; -1 where it has none."""
        if self._first_timestamp is None:
            if not self.size_bytes:
                return NO_TIMESTAMP
            first = next(walk(self.file(), 0, self.size_bytes), None)
            self._first_timestamp = first.max_timestamp if first else NO_TIMESTAMP
        return self._first_timestamp

    def find_timestamp(self, timestamp: int, start_offset: int) -> TimestampedOffset | None:
        """The first record at or past `start_offset` that is not earlier than `timestamp`."""
        begin = max(self.indexes().times.offset_before(timestamp), start_offset)
        file = self.file()
        for header in self.headers_from(begin):
            if header.max_timestamp < timestamp or header.last_offset < start_offset:
                continue
            for record in read_batch(file, header).records():
                if record.timestamp >= timestamp and record.offset >= start_offset:
                    offset = Offset(record.offset)
                    return TimestampedOffset(record.timestamp, offset, header.leader_epoch)
        return None

    def info(self) -> SegmentInfo:
        latest = self.max_timestamp
        return SegmentInfo(
            base_offset=self.base_offset,
            end_offset=self.end_offset,
            size_bytes=self.size_bytes,
            max_timestamp=latest if latest >= 0 else self.modified_ms,
        )

    # --- cutting ---------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that holds `offset` or a later one."""
        position, _ = self.locate(offset)
        indexes = self.indexes()
        self.file().truncate(position)
        self.size_bytes = position
        indexes.offsets.truncate_to_position(position)
        indexes.times.truncate_to(offset)
        self.learn_end()
        self.place.write_indexes(self.base_offset, indexes)
        transactions = self.transactions()
        if transactions.truncate_to(offset):
            self.set_transactions(transactions)

    def learn_end(self) -> bool:
        """Learn the end from the last index entry and the batches after it.

        False where the file does not end with a whole batch.
        """
        self._learn_latest(self.indexes().times.last)
        end, position = self.base_offset, 0
        for header in self.headers_from(self.base_offset + RELATIVE_OFFSET_MAX):
            end = Offset(header.last_offset + 1)
            position = header.position + header.size_bytes
            if header.max_timestamp > self.max_timestamp:
                self._latest, self._latest_offset = header.max_timestamp, header.last_offset
        self.end_offset = end
        self._first_timestamp = None
        self._bytes_since_entry = self.size_bytes - self.indexes().offsets.last_position
        self._tail = SegmentTail(end)
        return position == self.size_bytes
