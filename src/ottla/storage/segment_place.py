"""Where the segments of one log are, and the reading and writing of their index files.

What every segment of a log shares. Knows file names and formats, not what segments mean.
"""

from __future__ import annotations

import msgspec

from ottla.model.ids import NO_TIMESTAMP, Offset
from ottla.storage import file_names, time_index
from ottla.storage.batch_scan import walk
from ottla.storage.descriptor_pool import DescriptorPool
from ottla.storage.disk import Disk, File
from ottla.storage.index_cache import IndexCache, SegmentIndexes
from ottla.storage.offset_index import RELATIVE_OFFSET_MAX, OffsetIndex
from ottla.storage.time_index import TimeIndex
from ottla.storage.transaction_index import TransactionIndex


class SegmentPlace(msgspec.Struct, frozen=True):
    """One log's directory, and who opens files in it."""

    directory: str
    files: DescriptorPool
    index_cache: IndexCache

    @property
    def disk(self) -> Disk:
        return self.files.disk

    def path(self, base_offset: int, suffix: str) -> str:
        return f"{self.directory}/{file_names.file_name(base_offset, suffix)}"

    def load_indexes(self, base_offset: int, log_bytes: int) -> SegmentIndexes | None:
        """Both indexes, or None where either is missing or cannot be right."""
        path = self.path(base_offset, file_names.OFFSET_INDEX)
        offsets = OffsetIndex.load(self.disk, path, base_offset, log_bytes=log_bytes)
        path = self.path(base_offset, file_names.TIME_INDEX)
        times = TimeIndex.load(self.disk, path, base_offset)
        if offsets is None or times is None:
            return None
        return SegmentIndexes(offsets, times)

    def write_indexes(self, base_offset: int, indexes: SegmentIndexes) -> None:
        """Bring both files up to date."""
        indexes.offsets.write(self.disk, self.path(base_offset, file_names.OFFSET_INDEX))
        indexes.times.write(self.disk, self.path(base_offset, file_names.TIME_INDEX))

    def last_time_entry(self, base_offset: int) -> tuple[int, Offset] | None:
        """The last entry of a time index file; FileNotFoundError where there is none."""
        path = self.path(base_offset, file_names.TIME_INDEX)
        return time_index.last_entry(self.disk, path, base_offset)

    def load_transactions(self, base_offset: int) -> TransactionIndex:
        """The aborted transactions noted for a segment; a damaged file counts as empty."""
        path = self.path(base_offset, file_names.TRANSACTION_INDEX)
        return TransactionIndex.load(self.disk, path, base_offset) or TransactionIndex()


def index_batches(
    file: File, log_bytes: int, base_offset: int, *, interval_bytes: int
) -> SegmentIndexes:
    """Make both indexes of a data file from its batches' headers."""
    offsets, times = OffsetIndex(base_offset), TimeIndex(base_offset)
    since_entry = 0
    latest, latest_offset = NO_TIMESTAMP, Offset(-1)
    next_offset, end_max = base_offset, base_offset + RELATIVE_OFFSET_MAX + 1
    for header in walk(file, 0, log_bytes):
        if not header.can_be(next_offset, end_max):
            continue  # damaged; those behind it are found nonetheless
        next_offset = header.last_offset + 1
        if header.max_timestamp > latest:
            latest, latest_offset = header.max_timestamp, header.last_offset
        if since_entry > interval_bytes:
            offsets.append(header.last_offset, header.position)
            times.append(latest, latest_offset)
            since_entry = 0
        since_entry += header.size_bytes
    times.append(latest, latest_offset)
    return SegmentIndexes(offsets, times)
