"""The producer snapshot file (version 1): a log's producers as they were at one offset.

int16 version, uint32 CRC32C of all that follows, int32 count, then 46 bytes a producer. Of a
producer's batches only the last is in the file. A file that fails its checksum does not exist.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from crc32c import crc32c

from ottla.model.ids import Offset, ProducerId
from ottla.records.batch import NO_SEQUENCE, SEQUENCES
from ottla.storage import file_names
from ottla.storage.disk import Disk, read_file, replace_file
from ottla.storage.producer_state import ProducerEntry

VERSION: Final = 1
_HEADER: Final = struct.Struct(">hI")
_COUNT: Final = struct.Struct(">i")
_ENTRY: Final = struct.Struct(">qhiqiqiq")
_NONE: Final = -1


def encode(entries: Iterable[ProducerEntry]) -> bytes:
    packed = [_pack(entry) for entry in entries]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _HEADER.pack(VERSION, crc32c(body)) + body


def decode(data: bytes) -> list[ProducerEntry] | None:
    """The producers in a snapshot, or None where the bytes are not one."""
    if len(data) < _HEADER.size + _COUNT.size:
        return None
    version, checksum = _HEADER.unpack_from(data)
    body = memoryview(data)[_HEADER.size :]
    if version != VERSION or crc32c(body) != checksum:
        return None
    (count,) = _COUNT.unpack_from(body)
    if count < 0 or len(body) != _COUNT.size + count * _ENTRY.size:
        return None
    return [_unpack(fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :])]


def _pack(entry: ProducerEntry) -> bytes:
    last = entry.last_batch
    start = entry.transaction_start
    return _ENTRY.pack(
        entry.producer_id,
        entry.epoch,
        last.last_sequence if last else NO_SEQUENCE,
        last.last_offset if last else _NONE,
        last.last_offset - last.base_offset if last else 0,
        entry.last_timestamp,
        entry.coordinator_epoch,
        _NONE if start is None else start,
    )


def _unpack(fields: tuple[int, ...]) -> ProducerEntry:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, start = fields
    entry = ProducerEntry(ProducerId(producer_id), epoch)
    if offset >= 0:
        base_sequence = (sequence - delta) % SEQUENCES if sequence >= 0 else NO_SEQUENCE
        entry.batches.append((base_sequence, sequence, offset - delta, offset, timestamp))
    entry.last_timestamp = timestamp
    entry.coordinator_epoch = coordinator_epoch
    entry.transaction_start = None if start < 0 else Offset(start)
    return entry


class ProducerSnapshots:
    """The snapshot files in a log's directory, by the offset each was taken at."""

    __slots__ = ("_directory", "_disk", "_offsets")

    def __init__(self, disk: Disk, directory: str, names: Iterable[str] = ()) -> None:
        """`names` are what is in the directory already; anything but snapshots is passed over."""
        self._disk = disk
        self._directory = directory
        parsed = (file_names.parse(name) for name in names if name.endswith(file_names.SNAPSHOT))
        self._offsets = {name[0] for name in parsed if name and name[1] == file_names.SNAPSHOT}

    def path(self, offset: int) -> str:
        return f"{self._directory}/{file_names.file_name(offset, file_names.SNAPSHOT)}"

    def write(self, offset: int, entries: Iterable[ProducerEntry], *, sync: bool = False) -> None:
        replace_file(self._disk, self.path(offset), encode(entries), sync=sync)
        self._offsets.add(Offset(offset))

    def read(self, offset: int) -> list[ProducerEntry] | None:
        data = read_file(self._disk, self.path(offset))
        return None if data is None else decode(data)

    def remove(self, offset: int) -> None:
        self._disk.remove(self.path(offset))
        self._offsets.discard(Offset(offset))

    def remove_after(self, end_offset: int) -> None:
        """Remove those that describe more than the log holds now."""
        for offset in [offset for offset in self._offsets if offset > end_offset]:
            self.remove(offset)

    def forget(self, offset: int) -> str:
        """The file belongs to somebody else from now on; returns its path."""
        self._offsets.discard(Offset(offset))
        return self.path(offset)

    def offsets(self) -> list[Offset]:
        """Where snapshots stand, the newest first."""
        return sorted(self._offsets, reverse=True)
