"""The producer snapshot file (version 1): a log's producers as they were at one offset.

int16 version, uint32 CRC32C of all that follows, int32 count, then 46 bytes a producer with the
last of its batches: Kafka's file ends here, and Kafka reads no further. Behind it stand the batches
before the last, where there are any: for each producer, in the same order, an int8 count and 32
bytes a batch, the oldest first. Without them a producer whose requests were cut off by a restart
could be told that it sends out of order, though all it sends was stored.

A file that fails its checksum does not exist.
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
_EARLIER_COUNT: Final = struct.Struct(">b")
_EARLIER: Final = struct.Struct(">iiqqq")
_NONE: Final = -1


def encode(entries: Iterable[ProducerEntry]) -> bytes:
    listed = list(entries)
    packed = [_pack(entry) for entry in listed]
    if any(len(entry.batches) > 1 for entry in listed):
        packed += [_pack_earlier(entry) for entry in listed]
    body = _COUNT.pack(len(listed)) + b"".join(packed)
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
    end = _COUNT.size + count * _ENTRY.size
    if count < 0 or len(body) < end:
        return None
    entries = [_unpack(fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size : end])]
    if len(body) > end and not _unpack_earlier(body[end:], entries):
        return None
    return entries


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


def _pack_earlier(entry: ProducerEntry) -> bytes:
    earlier = list(entry.batches)[:-1]
    return _EARLIER_COUNT.pack(len(earlier)) + b"".join(_EARLIER.pack(*each) for each in earlier)


def _unpack_earlier(data: memoryview, entries: Iterable[ProducerEntry]) -> bool:
    """Gives the producers their earlier batches; False where the bytes are something else."""
    position = 0
    try:
        for entry in entries:
            (count,) = _EARLIER_COUNT.unpack_from(data, position)
            position += _EARLIER_COUNT.size
            earlier = []
            for _ in range(count):
                earlier.append(_EARLIER.unpack_from(data, position))
                position += _EARLIER.size
            entry.batches.extendleft(reversed(earlier))
    except struct.error:
        return False
    return position == len(data)


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
