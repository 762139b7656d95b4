"""Writes the files of a compacted segment, under names that count for nothing after a crash."""

from __future__ import annotations

from typing import Final

from ottla.model.ids import NO_TIMESTAMP, Offset
from ottla.records.batch import RecordBatch
from ottla.storage import file_names
from ottla.storage.disk import Disk, File
from ottla.storage.offset_index import OffsetIndex
from ottla.storage.time_index import TimeIndex
from ottla.storage.transaction_index import AbortedTransaction, TransactionIndex

BUFFER_BYTES: Final = 1024 * 1024


class SegmentWriter:
    """Batches go in, in the order of their offsets; `finish` leaves synced `.cleaned` files."""

    def __init__(
        self, disk: Disk, directory: str, base_offset: Offset, *, index_interval_bytes: int
    ) -> None:
        self._disk = disk
        self._stem = f"{directory}/{file_names.file_name(base_offset, '')}"
        self._index_interval_bytes = index_interval_bytes
        self._file: File = disk.open(self._path(file_names.LOG), create=True)
        self._file.truncate(0)
        self._buffer = bytearray()
        self._written = 0
        self._offsets = OffsetIndex(base_offset)
        self._times = TimeIndex(base_offset)
        self._bytes_since_entry = 0
        self._latest = NO_TIMESTAMP
        self._latest_offset = base_offset

    def _path(self, suffix: str) -> str:
        return self._stem + suffix + file_names.CLEANED

    @property
    def size_bytes(self) -> int:
        return self._written + len(self._buffer)

    def append(self, batch: RecordBatch) -> None:
        if batch.max_timestamp > self._latest:
            self._latest = batch.max_timestamp
            self._latest_offset = batch.last_offset
        if self._bytes_since_entry > self._index_interval_bytes:
            self._offsets.append(batch.last_offset, self.size_bytes)
            self._times.append(self._latest, self._latest_offset)
            self._bytes_since_entry = 0
        self._bytes_since_entry += batch.size_bytes
        self._buffer += batch.view
        if len(self._buffer) >= BUFFER_BYTES:
            self._write_buffer()

    def _write_buffer(self) -> None:
        self._file.write_at(self._written, self._buffer)
        self._written += len(self._buffer)
        self._buffer = bytearray()

    def finish(self, aborted: list[AbortedTransaction]) -> None:
        """Write the rest and the indexes, and sync all of it."""
        self._write_buffer()
        self._file.sync()
        self._file.close()
        self._times.append(self._latest, self._latest_offset)
        self._offsets.write(self._disk, self._path(file_names.OFFSET_INDEX))
        self._times.write(self._disk, self._path(file_names.TIME_INDEX))
        path = self._path(file_names.TRANSACTION_INDEX)
        self._disk.open(path, create=True).close()  # an empty one replaces the old one, too
        if aborted:
            TransactionIndex(aborted).write(self._disk, path)
        for suffix in file_names.INDEX_SUFFIXES:
            file = self._disk.open(self._path(suffix))
            file.sync()
            file.close()
