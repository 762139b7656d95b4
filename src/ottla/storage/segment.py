"""One data file of a log with its indexes. Does not know about other segments, time or the network.

Invariants:
1. Bytes at or past `size_bytes` in the file belong to nobody: a failed write may leave some there
   until they are cut.
2. Offsets in the file grow; `end_offset` is one past the last.
3. A sealed segment never changes, save that its indexes may be rebuilt from it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ottla.model.ids import NO_TIMESTAMP, Offset, Position
from ottla.records.batch import RecordBatch
from ottla.storage import file_names, time_index
from ottla.storage.batch_scan import ScannedHeader, read_batch, walk
from ottla.storage.descriptor_pool import DescriptorPool
from ottla.storage.disk import Bytes, Disk, File
from ottla.storage.index_cache import IndexCache, SegmentIndexes
from ottla.storage.offset_index import RELATIVE_OFFSET_MAX, OffsetIndex
from ottla.storage.time_index import TimeIndex
from ottla.storage.transaction_index import AbortedTransaction, TransactionIndex

TAIL_BATCHES_MAX: Final = 512
"""Appended batches whose positions are remembered, so that reading near the end needs no scan."""
POSITION_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class SegmentPlace:
    """What every segment of a log shares: where the files are, and who opens them."""

    directory: str
    files: DescriptorPool
    index_cache: IndexCache

    @property
    def disk(self) -> Disk:
        return self.files.disk

    def path(self, base_offset: int, suffix: str) -> str:
        return f"{self.directory}/{file_names.file_name(base_offset, suffix)}"


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """A segment as retention and compaction see it."""

    base_offset: Offset
    end_offset: Offset
    size_bytes: int
    max_timestamp: int
    """Of its batches; where none has one, the time it was last written to."""


@dataclass(frozen=True, slots=True)
class TimestampedOffset:
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
        "_log",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_tail_ends",
        "_tail_positions",
        "_tail_start",
        "_transactions",
        "base_offset",
        "end_offset",
        "index_interval_bytes",
        "modified_ms",
        "place",
        "size_bytes",
    )

    def __init__(self, place: SegmentPlace, base_offset: int, *, index_interval_bytes: int) -> None:
        self.base_offset = Offset(base_offset)
        self.end_offset = Offset(base_offset)
        self.size_bytes = 0
        self.modified_ms = 0
        self.index_interval_bytes = index_interval_bytes
        self.place = place
        self._log = place.files.file(place.path(base_offset, file_names.LOG))
        self._active: SegmentIndexes | None = None
        self._transactions: TransactionIndex | None = None
        self._bytes_since_entry = 0
        self._first_timestamp: int | None = None
        self._max_timestamp: int | None = None
        self._max_timestamp_offset = Offset(-1)
        self._tail_start = base_offset
        self._tail_ends: list[int] = []
        self._tail_positions: list[int] = []

    # --- its files -------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        return self._log.path

    @property
    def is_active(self) -> bool:
        return self._active is not None

    def file(self) -> File:
        return self._log.open()

    def create(self, now_ms: int) -> None:
        """Make the empty files of a new active segment."""
        self.modified_ms = now_ms
        self._log.open(create=True)
        self._active = SegmentIndexes(OffsetIndex(self.base_offset), TimeIndex(self.base_offset))
        self._transactions = TransactionIndex()
        self._max_timestamp = NO_TIMESTAMP

    def activate(self) -> None:
        """Make a segment found on disk the one that is appended to."""
        indexes = self.indexes()
        self.place.index_cache.forget(self.path)
        self._active = indexes
        self._learn_max_timestamp(indexes.times.last)
        self._bytes_since_entry = self.size_bytes - indexes.offsets.last_position
        self._tail_start = self.end_offset
        self.transactions()

    def seal(self, now_ms: int) -> None:
        """No more appends: complete the indexes, write them, and free what only appends need."""
        self.write_indexes()
        self.modified_ms = now_ms
        if self._active is not None:
            self.place.index_cache.put(self.path, self._active)
        self._active = None
        self._tail_start = self.end_offset
        self._tail_ends = []
        self._tail_positions = []

    def write_indexes(self) -> None:
        """Bring the index files up to date with what was appended."""
        indexes = self._active
        if indexes is None:
            return
        if self._max_timestamp is not None and self._max_timestamp >= 0:
            indexes.times.append(self._max_timestamp, self._max_timestamp_offset)
        disk, path = self.place.disk, self.place.path
        indexes.offsets.write(disk, path(self.base_offset, file_names.OFFSET_INDEX))
        indexes.times.write(disk, path(self.base_offset, file_names.TIME_INDEX))

    def release(self) -> None:
        self._log.release()

    def paths(self) -> list[str]:
        """Where its files are, whether or not each exists."""
        return [self.place.path(self.base_offset, suffix) for suffix in file_names.SEGMENT_SUFFIXES]

    # --- appending -------------------------------------------------------------------------------

    def append(self, data: Bytes, batches: list[RecordBatch]) -> None:
        """Write `data`, which holds exactly `batches`. On OSError nothing is changed here."""
        position = self.size_bytes
        self._log.open().write_at(position, data)
        ends = self._tail_ends
        positions = self._tail_positions
        for batch in batches:
            size_bytes = batch.size_bytes
            last_offset = batch.base_offset + batch.last_offset_delta
            if batch.max_timestamp > self._max_timestamp:  # type: ignore[operator]
                self._max_timestamp = batch.max_timestamp
                self._max_timestamp_offset = Offset(last_offset)
            if self._bytes_since_entry > self.index_interval_bytes:
                self._add_entry(last_offset, position)
            self._bytes_since_entry += size_bytes
            ends.append(last_offset + 1)
            positions.append(position)
            position += size_bytes
        if self._first_timestamp is None and not self.size_bytes:
            self._first_timestamp = batches[0].max_timestamp
        self.size_bytes = position
        self.end_offset = Offset(ends[-1])
        if len(ends) > TAIL_BATCHES_MAX:
            self._trim_tail()

    def _add_entry(self, last_offset: int, position: int) -> None:
        indexes = self._active
        assert indexes is not None, "a sealed segment is not appended to"
        indexes.offsets.append(last_offset, position)
        indexes.times.append(self._max_timestamp or 0, self._max_timestamp_offset)
        self._bytes_since_entry = 0

    def _trim_tail(self) -> None:
        drop = len(self._tail_ends) - TAIL_BATCHES_MAX // 2
        self._tail_start = self._tail_ends[drop - 1]
        del self._tail_ends[:drop]
        del self._tail_positions[:drop]

    def append_aborted(self, transaction: AbortedTransaction) -> None:
        path = self.place.path(self.base_offset, file_names.TRANSACTION_INDEX)
        self.transactions().append(transaction, self.place.disk, path)

    def cut_unknown_tail(self) -> None:
        """After a failed write: remove whatever it left behind."""
        self._log.open().truncate(self.size_bytes)

    def can_hold(self, last_offset: int) -> bool:
        return last_offset - self.base_offset <= RELATIVE_OFFSET_MAX

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
            indexes = self._load_indexes() or self.rebuild_indexes()
            cache.put(self.path, indexes)
        return indexes

    def _load_indexes(self) -> SegmentIndexes | None:
        disk, path, base = self.place.disk, self.place.path, self.base_offset
        offsets = OffsetIndex.load(
            disk, path(base, file_names.OFFSET_INDEX), base, log_bytes=self.size_bytes
        )
        times = TimeIndex.load(disk, path(base, file_names.TIME_INDEX), base)
        if offsets is None or times is None:
            return None
        return SegmentIndexes(offsets, times)

    def rebuild_indexes(self) -> SegmentIndexes:
        """Make the offset and time indexes anew from the batches' headers, and write them."""
        offsets, times = OffsetIndex(self.base_offset), TimeIndex(self.base_offset)
        since_entry = 0
        latest, latest_offset = NO_TIMESTAMP, Offset(-1)
        for header in walk(self.file(), 0, self.size_bytes):
            if header.max_timestamp > latest:
                latest, latest_offset = header.max_timestamp, header.last_offset
            if since_entry > self.index_interval_bytes:
                offsets.append(header.last_offset, header.position)
                times.append(latest, latest_offset)
                since_entry = 0
            since_entry += header.size_bytes
        times.append(latest, latest_offset)
        disk, path = self.place.disk, self.place.path
        offsets.write(disk, path(self.base_offset, file_names.OFFSET_INDEX))
        times.write(disk, path(self.base_offset, file_names.TIME_INDEX))
        return SegmentIndexes(offsets, times)

    def transactions(self) -> TransactionIndex:
        """The aborted transactions that end here."""
        if self._transactions is None:
            path = self.place.path(self.base_offset, file_names.TRANSACTION_INDEX)
            loaded = TransactionIndex.load(self.place.disk, path, self.base_offset)
            self._transactions = loaded if loaded is not None else TransactionIndex()
        return self._transactions

    def set_transactions(self, index: TransactionIndex) -> None:
        self._transactions = index
        index.write(
            self.place.disk, self.place.path(self.base_offset, file_names.TRANSACTION_INDEX)
        )

    def locate(self, offset: int) -> tuple[Position, int]:
        """Where the first batch that ends after `offset` begins, and its size.

        The segment's size and 0 where no batch does.
        """
        if offset >= self._tail_start:
            index = bisect_right(self._tail_ends, offset)
            positions = self._tail_positions
            if index >= len(positions):
                return Position(self.size_bytes), 0
            after = positions[index + 1] if index + 1 < len(positions) else self.size_bytes
            return Position(positions[index]), after - positions[index]
        header = self.find(offset)
        if header is None:
            return Position(self.size_bytes), 0
        return Position(header.position), header.size_bytes

    def find(self, offset: int) -> ScannedHeader | None:
        """The header of the first batch that ends after `offset`."""
        for header in self.headers_from(offset):
            if header.last_offset >= offset:
                return header
        return None

    def headers_from(self, offset: int) -> Iterator[ScannedHeader]:
        """Headers from somewhere at or before the batch that holds `offset`, to the end."""
        file = self.file()
        entry = self.indexes().offsets.entry_before(offset)
        if entry is None:
            return walk(file, 0, self.size_bytes)
        first = next(walk(file, entry.position, self.size_bytes), None)
        if first is None or first.last_offset != entry.last_offset:
            # The index file lies, so it is not used again; the data decides.
            self._adopt(self.rebuild_indexes())
            return walk(file, 0, self.size_bytes)
        return walk(file, entry.position, self.size_bytes)

    def _adopt(self, indexes: SegmentIndexes) -> None:
        if self._active is not None:
            self._active = indexes
        else:
            self.place.index_cache.put(self.path, indexes)

    # --- time ------------------------------------------------------------------------------------

    @property
    def max_timestamp(self) -> int:
        """The latest timestamp of its batches, or -1."""
        if self._max_timestamp is None:
            self._learn_max_timestamp(self._last_time_entry())
        latest = self._max_timestamp
        return NO_TIMESTAMP if latest is None else latest

    @property
    def max_timestamp_offset(self) -> Offset:
        """The last offset of the batch with the latest timestamp."""
        return self._max_timestamp_offset if self.max_timestamp >= 0 else self.base_offset

    def _last_time_entry(self) -> tuple[int, Offset] | None:
        indexes = self._active or self.place.index_cache.get(self.path)
        if indexes is not None:
            return indexes.times.last
        path = self.place.path(self.base_offset, file_names.TIME_INDEX)
        try:
            file = self.place.disk.open(path)
        except FileNotFoundError:
            return self.indexes().times.last
        size = file.size()
        file.close()
        return time_index.last_entry(self.place.disk, path, size, self.base_offset)

    def _learn_max_timestamp(self, last: tuple[int, Offset] | None) -> None:
        self._max_timestamp, self._max_timestamp_offset = last or (NO_TIMESTAMP, Offset(-1))

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
                    return TimestampedOffset(
                        record.timestamp, Offset(record.offset), header.leader_epoch
                    )
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
        disk, path = self.place.disk, self.place.path
        indexes.offsets.write(disk, path(self.base_offset, file_names.OFFSET_INDEX))
        indexes.times.write(disk, path(self.base_offset, file_names.TIME_INDEX))
        transactions = self.transactions()
        if transactions.truncate_to(offset):
            self.set_transactions(transactions)

    def learn_end(self) -> bool:
        """Learn the end from the last index entry and the batches after it.

        False where the file does not end with a whole batch.
        """
        offsets = self.indexes().offsets
        start = offsets.last_position
        self._learn_max_timestamp(self.indexes().times.last)
        end, position = self.base_offset, 0
        for header in self.headers_from(self.base_offset + RELATIVE_OFFSET_MAX):
            end = Offset(header.last_offset + 1)
            position = header.position + header.size_bytes
            if header.max_timestamp > self.max_timestamp:
                self._max_timestamp = header.max_timestamp
                self._max_timestamp_offset = header.last_offset
        self.end_offset = end
        self._first_timestamp = None
        self._bytes_since_entry = self.size_bytes - start
        self._tail_start = end
        self._tail_ends = []
        self._tail_positions = []
        return position == self.size_bytes
