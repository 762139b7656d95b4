"""Looks at a log's files without opening the log: what is in them, and what is wrong with them.

For people with a broken disk and a question. Reads only; may be used beside a running broker, whose
active segment can then seem to end in the middle of a batch.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ottla.errors import RecordError
from ottla.model.ids import Offset, Position
from ottla.records.batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, RecordBatch
from ottla.storage import file_names, producer_snapshot
from ottla.storage.batch_scan import walk
from ottla.storage.disk import Disk, File, read_file
from ottla.storage.epoch_history import EpochHistory
from ottla.storage.offset_index import OffsetIndex
from ottla.storage.time_index import TimeIndex
from ottla.storage.transaction_index import TransactionIndex


class BatchRow(msgspec.Struct, frozen=True):
    """One stretch of a data file: a batch, or bytes that are none."""

    position: Position
    size_bytes: int
    batch: RecordBatch | None
    """None where the bytes have no readable header."""
    problem: str | None
    """What is wrong, in words; None for a batch that is intact and in order."""


class Finding(msgspec.Struct, frozen=True):
    """Something wrong with a file."""

    path: str
    position: Position
    problem: str


class VerifiedLog(msgspec.Struct, frozen=True):
    """What looking at a whole log has found."""

    segments: int
    batches: int
    records: int
    size_bytes: int
    start_offset: Offset | None
    end_offset: Offset | None
    findings: tuple[Finding, ...]


def inspect_segment(disk: Disk, path: str) -> Iterator[BatchRow]:
    """Every batch of a data file in order, then whatever is no batch as one last row."""
    file = disk.open(path)
    try:
        yield from _rows(file, _base_offset(path))
    finally:
        file.close()


def _rows(file: File, next_offset: Offset) -> Iterator[BatchRow]:
    position, end = 0, file.size()
    while position < end:
        header = file.read_at(position, HEADER_BYTES)
        length = int.from_bytes(header[8:LOG_OVERHEAD_BYTES], "big", signed=True)
        size_bytes = length + LOG_OVERHEAD_BYTES
        if len(header) < HEADER_BYTES or not HEADER_BYTES <= size_bytes <= end - position:
            yield _torn(position, end, header)
            return
        view = memoryview(bytearray(file.read_at(position, size_bytes)))
        try:
            batch = RecordBatch(view)
        except RecordError as error:
            yield BatchRow(Position(position), end - position, None, str(error))
            return
        yield BatchRow(Position(position), size_bytes, batch, _problem(batch, next_offset))
        next_offset = max(next_offset, batch.next_offset)
        position += size_bytes


def _torn(position: int, end: int, header: bytes) -> BatchRow:
    rest = end - position
    problem = "zeros, as a power cut may leave them" if not any(header) else "a part of a batch"
    return BatchRow(Position(position), rest, None, f"the last {rest} bytes are {problem}")


def _problem(batch: RecordBatch, next_offset: Offset) -> str | None:
    try:
        batch.check()
    except RecordError as error:
        return str(error)
    if batch.base_offset < next_offset:
        return f"offset {batch.base_offset} comes after offset {next_offset - 1}"
    return None


def _base_offset(path: str) -> Offset:
    parsed = file_names.parse(path.rpartition("/")[2])
    return parsed[0] if parsed is not None else Offset(0)


# --- a whole log ----------------------------------------------------------------------------------


def verify_log(disk: Disk, directory: str) -> VerifiedLog:
    """Check every file of a partition's directory against its own rules and the data."""
    names = sorted(entry.name for entry in disk.entries(directory) if not entry.is_directory)
    findings: list[Finding] = []
    logs = [name for name in names if name.endswith(file_names.LOG)]
    batches = records = size_bytes = 0
    start: Offset | None = None
    end: Offset | None = None
    for name in logs:
        path = f"{directory}/{name}"
        base = _base_offset(path)
        if end is not None and base > end:
            gap = f"offsets {end} to {base - 1} are missing before it, unless Kafka compacted them"
            findings.append(Finding(path, Position(0), gap))
        start = base if start is None else start
        end = base
        for row in inspect_segment(disk, path):
            size_bytes += row.size_bytes
            if row.problem is not None:
                findings.append(Finding(path, row.position, row.problem))
            if row.batch is not None:
                batches += 1
                records += row.batch.record_count
                end = row.batch.next_offset
        findings += _check_indexes(disk, path)
    findings += _check_others(disk, directory, names)
    return VerifiedLog(len(logs), batches, records, size_bytes, start, end, tuple(findings))


def _check_indexes(disk: Disk, log_path: str) -> Iterator[Finding]:
    base_offset = _base_offset(log_path)
    stem = log_path.removesuffix(file_names.LOG)
    file = disk.open(log_path)
    try:
        path = stem + file_names.OFFSET_INDEX
        offsets = OffsetIndex.load(disk, path, base_offset, log_bytes=file.size())
        if offsets is not None:
            yield from _check_entries(file, offsets, path)
        elif disk.exists(path):
            yield Finding(path, Position(0), "the entries are not in order, or not whole")
        path = stem + file_names.TIME_INDEX
        if TimeIndex.load(disk, path, base_offset) is None and disk.exists(path):
            yield Finding(path, Position(0), "the entries are not in order, or not whole")
        path = stem + file_names.TRANSACTION_INDEX
        if TransactionIndex.load(disk, path, base_offset) is None:
            yield Finding(path, Position(0), "the entries are not whole, or of no known version")
    finally:
        file.close()


def _check_entries(file: File, index: OffsetIndex, path: str) -> Iterator[Finding]:
    size = file.size()
    for number, entry in enumerate(index.entries()):
        header = next(walk(file, entry.position, size), None)
        if header is None or header.last_offset != entry.last_offset:
            position = Position(8 * number)
            problem = f"no batch ends with offset {entry.last_offset} at byte {entry.position}"
            yield Finding(path, position, problem)


def _check_others(disk: Disk, directory: str, names: list[str]) -> Iterator[Finding]:
    for name in names:
        path = f"{directory}/{name}"
        if name.endswith(file_names.SNAPSHOT):
            if producer_snapshot.decode(read_file(disk, path) or b"") is None:
                yield Finding(path, Position(0), "the checksum or the version is wrong")
        elif name == file_names.EPOCHS and EpochHistory.load(disk, path) is None:
            yield Finding(path, Position(0), "the epochs are not in order, or not whole")
