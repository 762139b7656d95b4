"""Builders for the storage tests: a disk, a clock, logs on them, and batches to put in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ottla.model.ids import Offset
from ottla.records.batch import RecordBatch, split
from ottla.records.builder import ProducerStamp, build_batch
from ottla.records.compression import Compression
from ottla.records.control import ControlType, EndTransactionMarker, marker_batch
from ottla.records.record import Record
from ottla.settings.topic import TopicSettings
from ottla.storage.descriptor_pool import DescriptorPool
from ottla.storage.disk import read_region
from ottla.storage.index_cache import IndexCache
from ottla.storage.log import Log
from ottla.storage.producer_state import Origin
from ottla.storage.recovery import OpenedLog, Opening, open_log
from ottla.storage.segment_place import SegmentPlace
from ottla.storage.simulated_disk import SimulatedDisk

DIRECTORY = "/data/topic-0"
NOW_MS = 1_700_000_000_000
SMALL = replace(TopicSettings(), index_interval_bytes=200, segment_bytes=1 << 20)


class SetClock:
    """A clock that stands until it is moved."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


def settings(**changes: Any) -> TopicSettings:
    """Settings with small index intervals, and `changes` (not checked against bounds)."""
    return replace(SMALL, **changes)


@dataclass
class World:
    """One log's disk and clock, which outlive the log itself."""

    settings: TopicSettings = SMALL
    disk: SimulatedDisk = field(default_factory=SimulatedDisk)
    clock: SetClock = field(default_factory=SetClock)
    start_offset: int = 0
    recovery_point: int = 0

    def __post_init__(self) -> None:
        self.disk.make_directory(DIRECTORY)
        self.disk.sync_directory("/data")

    def open(self, *, clean: bool = False, sizes: dict[str, int] | None = None) -> Log:
        return self.opened(clean=clean, sizes=sizes).log

    def opened(self, *, clean: bool = False, sizes: dict[str, int] | None = None) -> OpenedLog:
        place = SegmentPlace(DIRECTORY, DescriptorPool(self.disk), IndexCache())
        return open_log(
            Opening(
                place,
                self.settings,
                self.clock,
                start_offset=Offset(self.start_offset),
                recovery_point=Offset(self.recovery_point),
                was_closed_cleanly=clean,
                expected_sizes=sizes,
            )
        )

    def names(self) -> list[str]:
        return sorted(entry.name for entry in self.disk.entries(DIRECTORY))

    def index_sizes(self) -> dict[str, int]:
        return {
            entry.name: entry.size_bytes
            for entry in self.disk.entries(DIRECTORY)
            if entry.name.endswith("index") and entry.size_bytes
        }


def a_log(**changes: Any) -> Log:
    """An empty log on a disk of its own."""
    return World(settings(**changes)).open()


def batch(
    *values: bytes,
    key: bytes | None = None,
    timestamp: int = NOW_MS,
    compression: Compression = Compression.NONE,
    producer: ProducerStamp | None = None,
) -> memoryview:
    """A batch of these values (one empty value where none is given), as a client sends it."""
    records = [Record(0, timestamp, key, value) for value in values or (b"",)]
    stamp = ProducerStamp() if producer is None else producer
    return memoryview(build_batch(records, compression=compression, producer=stamp))


def keyed(*pairs: tuple[bytes, bytes | None], timestamp: int = NOW_MS, **more: Any) -> memoryview:
    """A batch of (key, value) records; a value of None is a tombstone."""
    records = [Record(0, timestamp, key, value) for key, value in pairs]
    return memoryview(build_batch(records, **more))


def transactional(producer_id: int, sequence: int, *values: bytes, epoch: int = 0) -> memoryview:
    return batch(*values, producer=ProducerStamp(producer_id, epoch, sequence, True))


def marker(producer_id: int, *, commit: bool, epoch: int = 0, coordinator: int = 0) -> memoryview:
    end = EndTransactionMarker(ControlType.COMMIT if commit else ControlType.ABORT, coordinator)
    data = marker_batch(end, producer_id=producer_id, producer_epoch=epoch, timestamp=NOW_MS)
    return memoryview(data)


def append(log: Log, *batches: memoryview, epoch: int = 0) -> None:
    for data in batches:
        log.append(data, leader_epoch=epoch)


def end_transaction(log: Log, producer_id: int, *, commit: bool) -> None:
    data = marker(producer_id, commit=commit)
    log.append(data, leader_epoch=max(log.epochs.latest, 0), origin=Origin.COORDINATOR)


def batches_from(log: Log, offset: int, *, end: int | None = None) -> list[RecordBatch]:
    """Every batch from the one that holds `offset` on, read piece by piece."""
    limit = log.end_offset if end is None else end
    found: list[RecordBatch] = []
    while (region := log.read(offset, bytes_max=1 << 20, end=limit)) is not None:
        found += split(memoryview(read_region(region)), ignore_torn_tail=True)
        offset = found[-1].next_offset
    return found


def values(log: Log, offset: int | None = None) -> dict[int, bytes | None]:
    """Every record's value by its offset; control records left out."""
    start = log.start_offset if offset is None else offset
    return {
        record.offset: record.value
        for found in batches_from(log, start)
        if not found.is_control
        for record in found.records()
        if record.offset >= start
    }


def flush(log: Log) -> None:
    job = log.begin_flush()
    job.run()
    log.finish_flush(job)
