"""The data directory: all logs of one broker, their checkpoints, and proof that no other is here.

Invariants:
1. One process at a time: the lock is held from `open` to `close`.
2. The clean-stop mark exists only while no log is open: it is removed, durably, before the first
   append can happen and written after the last file has been synced.
3. A partition's metadata file is written before any of its data.

Does not know which partitions there ought to be.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Final

import msgspec

from ottla.errors import ConfigError, StorageFailed
from ottla.model.clock import Clock
from ottla.model.ids import (
    NO_LEADER_EPOCH,
    NO_TOPIC_ID,
    LeaderEpoch,
    Offset,
    TopicId,
    TopicPartition,
)
from ottla.settings.topic import TopicSettings
from ottla.storage import file_names
from ottla.storage.checkpoint import CheckpointJob
from ottla.storage.descriptor_pool import OPEN_FILES_MAX, DescriptorPool
from ottla.storage.directory_identity import (
    Identity,
    read_identity,
    read_topic_id,
    write_identity,
    write_topic_id,
)
from ottla.storage.disk import Disk, Lock, read_file, replace_file
from ottla.storage.epoch_history import EpochHistory
from ottla.storage.flush import FlushJob, run_one_by_one
from ottla.storage.index_cache import INDEX_MEMORY_BYTES_MAX, IndexCache
from ottla.storage.log import Log
from ottla.storage.offset_checkpoints import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    START_OFFSETS,
    OffsetCheckpoints,
)
from ottla.storage.recovery import OpenedLog, Opening, open_log
from ottla.storage.removal import RemovalJob
from ottla.storage.room import has_room
from ottla.storage.segment_place import SegmentPlace
from ottla.storage.strays import Strays

LOCK: Final = ".lock"
CLEAN_STOP: Final = ".kafka_cleanshutdown"
CLEAN_STOP_SIZES: Final = ".ottla_cleanshutdown_sizes"
BOOT: Final = ".ottla_boot"
"""Which run of the machine wrote here last."""

BEGINNING: Final = Offset(0)
CLOSED_AT_ONCE: Final = 256
"""Logs whose files are open while they are synced, out of those that may be."""

Sizes = dict[str, dict[str, int]]


class DirectoryLimits(msgspec.Struct, frozen=True):
    """Bounds shared by all logs of a directory."""

    open_files_max: int = OPEN_FILES_MAX
    index_memory_bytes_max: int = INDEX_MEMORY_BYTES_MAX


_DEFAULT_LIMITS: Final = DirectoryLimits()


class LogDirectory:
    """Opens, creates and deletes the logs below one root."""

    def __init__(self, disk: Disk, root: str, clock: Clock, lock: Lock) -> None:
        self.root = root
        self.logs: dict[TopicPartition, Log] = {}
        self.was_closed_cleanly = False
        self.may_lack_records = False
        """Whether the machine went down while logs were open: what was not synced may be gone."""
        self._disk = disk
        self._clock = clock
        self._lock = lock
        self._files = DescriptorPool(disk)
        self._index_cache = IndexCache()
        self._sizes: Sizes | None = None
        self._found: dict[TopicPartition, None] = {}
        """On disk and not opened yet; only these can profit from a clean stop."""
        self.lost: dict[TopicPartition, Offset] = {}
        """Where logs ended whose folders are gone, as far as the checkpoints tell."""
        self._deleted: deque[tuple[int, str]] = deque()
        self._strays = Strays(disk, root)
        self._points = OffsetCheckpoints(disk, root)

    @classmethod
    def open(
        cls, disk: Disk, root: str, clock: Clock, *, limits: DirectoryLimits = _DEFAULT_LIMITS
    ) -> LogDirectory:
        """Take possession of `root`, which is made where it does not exist."""
        disk.make_directory(root)
        lock = disk.lock(f"{root}/{LOCK}")
        if lock is None:
            raise ConfigError(
                "log.dirs",
                f"{root} is in use by another broker",
                "stop that broker, or give this one a directory of its own",
            )
        directory = cls(disk, root, clock, lock)
        directory._files = DescriptorPool(disk, open_files_max=limits.open_files_max)
        directory._index_cache = IndexCache(memory_bytes_max=limits.index_memory_bytes_max)
        directory._begin()
        return directory

    def _begin(self) -> None:
        now_ms = self._clock.now_ms()
        for entry in self._disk.entries(self.root):
            if not entry.is_directory:
                continue
            if file_names.is_deleted_directory(entry.name):
                self._deleted.append((now_ms, f"{self.root}/{entry.name}"))
            elif file_names.parse_stray(entry.name) is not None:
                self._strays.found(entry.name)
            elif (partition := file_names.parse_partition(entry.name)) is not None:
                self._found[partition] = None
        self._points.read()
        self.lost = self._points.ends_of_missing(self._found)
        self.was_closed_cleanly = self._disk.exists(f"{self.root}/{CLEAN_STOP}")
        if self.was_closed_cleanly:
            self._sizes = self._read_sizes()
            self._disk.remove(f"{self.root}/{CLEAN_STOP}")
            self._disk.remove(f"{self.root}/{CLEAN_STOP_SIZES}")
            self._disk.sync_directory(self.root)
        boot = self._disk.boot().encode()
        has_been_up = bool(boot) and boot == read_file(self._disk, f"{self.root}/{BOOT}")
        self.may_lack_records = not self.was_closed_cleanly and not has_been_up
        if not self.may_lack_records:
            self.note_boot()

    def note_boot(self) -> None:
        """Note which run of the machine the logs are written in.

        Where they may lack records, only once nobody relies on them any more: a start that fails
        before that must not make the next one forget what was lost.
        """
        path, boot = f"{self.root}/{BOOT}", self._disk.boot().encode()
        if boot != read_file(self._disk, path):
            replace_file(self._disk, path, boot, sync=True)

    def _read_sizes(self) -> Sizes | None:
        data = read_file(self._disk, f"{self.root}/{CLEAN_STOP_SIZES}")
        try:
            return None if data is None else msgspec.json.decode(data, type=Sizes)
        except msgspec.MsgspecError:
            return None

    # --- identity --------------------------------------------------------------------------------

    @property
    def identity(self) -> Identity | None:
        return read_identity(self._disk, self.root)

    def claim(self, identity: Identity) -> None:
        """Note whose data this is; refused where it is somebody else's."""
        known = self.identity
        if known is None:
            write_identity(self._disk, self.root, identity)
        elif (known.node_id, known.cluster_id) != (identity.node_id, identity.cluster_id):
            raise ConfigError(
                "log.dirs",
                f"{self.root} holds the data of node {known.node_id} of cluster {known.cluster_id}",
                f"give node {identity.node_id} of cluster {identity.cluster_id} its own directory",
            )

    # --- logs ------------------------------------------------------------------------------------

    def partitions(self) -> list[TopicPartition]:
        """Every partition there is a directory for, opened or not."""
        return sorted({*self._found, *self.logs})

    def path(self, partition: TopicPartition) -> str:
        return f"{self.root}/{partition}"

    def topic_id(self, partition: TopicPartition) -> TopicId | None:
        return read_topic_id(self._disk, self.path(partition))

    def open_log(
        self,
        partition: TopicPartition,
        settings: TopicSettings,
        *,
        topic_id: TopicId = NO_TOPIC_ID,
        begins_at: Offset = BEGINNING,
    ) -> OpenedLog:
        """Open the partition's log, made new and empty where there is none; a new one begins at
        the given offset."""
        path = self.path(partition)
        is_found = partition in self._found
        try:
            is_new = not is_found and partition not in self.logs
            # A log brought back is read as after a crash: it may have been set aside unsynced.
            if is_new and not self._strays.bring_back(partition, topic_id):
                self._forget(partition)
                self._make(path, topic_id)
            opened = open_log(
                Opening(
                    place=SegmentPlace(path, self._files, self._index_cache),
                    settings=settings,
                    clock=self._clock,
                    start_offset=self._points.get(START_OFFSETS, partition, begins_at),
                    recovery_point=self._points.get(RECOVERY_POINTS, partition),
                    was_closed_cleanly=is_found and self.was_closed_cleanly,
                    expected_sizes=None if self._sizes is None else self._sizes.get(str(partition)),
                )
            )
        except OSError as error:
            raise StorageFailed(f"{path} cannot be opened: {error}") from error
        opened.log.first_dirty_offset = self._points.get(CLEANER_OFFSETS, partition)
        self._found.pop(partition, None)
        self.lost.pop(partition, None)
        self.logs[partition] = opened.log
        return opened

    def _make(self, path: str, topic_id: TopicId) -> None:
        self._disk.make_directory(path)
        if topic_id != NO_TOPIC_ID:
            write_topic_id(self._disk, path, topic_id, sync=False)

    def reopen_log(self, partition: TopicPartition) -> OpenedLog:
        """Open a fenced log again, believing only what was flushed."""
        log = self.logs[partition]
        log.release()
        self._points.take(partition, log)
        opened = self.open_log(partition, log.settings)
        opened.log.advance_high_watermark(log.high_watermark)
        if log.flusher.is_cut:
            opened.log.flusher.cut(opened.log.end_offset)
        return opened

    def has_log(self, partition: TopicPartition, topic_id: TopicId) -> bool:
        """Whether there is a log of this topic's partition, in its place or set aside."""
        is_there = partition in self._found or partition in self.logs
        return is_there or self._strays.find(partition, topic_id) is not None

    def holds_log(self, partition: TopicPartition) -> bool:
        """Whether the directory of a partition has files of a log in it; a folder that merely has
        such a name is somebody else's."""
        return any(
            entry.name == file_names.PARTITION_METADATA or file_names.parse(entry.name) is not None
            for entry in self._disk.entries(self.path(partition))
        )

    def latest_epoch(self, partition: TopicPartition) -> LeaderEpoch:
        """The leader epoch that a log not opened yet has last noted."""
        path = f"{self.path(partition)}/{file_names.EPOCHS}"
        history = EpochHistory.load(self._disk, path)
        return history.latest if history is not None else NO_LEADER_EPOCH

    def ignore(self, partition: TopicPartition) -> None:
        """The directory of this name is not a log."""
        self._found.pop(partition, None)

    def set_aside_stray(self, partition: TopicPartition) -> str:
        """Keep the log of a partition that nobody knows, out of the way; where it is now."""
        log = self.logs.pop(partition, None)
        if log is not None:
            log.release()
        path = self._strays.set_aside(partition, self._clock.now_ms())
        self._forget(partition)
        return path

    def _forget(self, partition: TopicPartition) -> None:
        """What was noted of a log must not be taken for that of a new one of the same name."""
        self._found.pop(partition, None)
        self.lost.pop(partition, None)
        self._points.forget(partition)

    def delete_log(self, partition: TopicPartition) -> None:
        """The partition is gone at once; its bytes go after the topic's delay."""
        log = self.logs.pop(partition, None)
        if log is None and partition not in self._found:
            return
        now_ms = self._clock.now_ms()
        delay_ms = log.settings.file_delete_delay_ms if log is not None else 0
        if log is not None:
            log.release()
        unique = blake2b(f"{partition} {now_ms} {len(self._deleted)}".encode(), digest_size=16)
        target = f"{self.root}/{file_names.deleted_directory(partition, unique.hexdigest())}"
        # Not synced: should the old name come back, its topic id tells that it is of no use.
        self._disk.rename(self.path(partition), target)
        self._forget(partition)
        self._deleted.append((now_ms + delay_ms, target))

    def begin_removal(self, now_ms: int) -> RemovalJob:
        """What is left of deleted segments and partitions whose delay has passed."""
        ending = [log.deleted for log in self.logs.values() if log.deleted]
        files = [path for deleted in ending for path in deleted.take_due(now_ms)]
        due = [path for due_ms, path in self._deleted if due_ms <= now_ms]
        self._deleted = deque(entry for entry in self._deleted if entry[0] > now_ms)
        return RemovalJob(self._disk, files, due)

    # --- checkpoints -----------------------------------------------------------------------------

    def high_watermark(self, partition: TopicPartition) -> Offset:
        """The high watermark at the last checkpoint; the log's beginning where none is known."""
        return self._points.get(HIGH_WATERMARKS, partition)

    def begin_checkpoints(self) -> CheckpointJob:
        """The offsets that have changed since the last time, to be written in a thread."""
        for partition, log in self.logs.items():
            self._points.take(partition, log)
        return self._points.begin()

    # --- ending ----------------------------------------------------------------------------------

    def close(
        self,
        *,
        on_failure: Callable[[TopicPartition, StorageFailed], None],
        run: Callable[[Iterable[FlushJob]], None] = run_one_by_one,
    ) -> None:
        """Close every log, and leave the clean-stop mark unless one of them failed.

        `run` runs all jobs it is given; a disk syncs many files at once in little more time than
        one.
        """
        sizes: Sizes = {} if self._sizes is None else self._sizes
        failed: set[TopicPartition] = set()

        def note(partition: TopicPartition, error: StorageFailed) -> None:
            failed.add(partition)
            on_failure(partition, error)

        every = list(self.logs)
        for start in range(0, len(every), CLOSED_AT_ONCE):
            some = every[start : start + CLOSED_AT_ONCE]
            failed |= {partition for partition in some if self.logs[partition].is_fenced}
            _close_logs({each: self.logs[each] for each in some if each not in failed}, note, run)
            for partition in some:
                if partition not in failed:
                    sizes[str(partition)] = self._sizes_of(partition)
        is_clean = not failed
        self.begin_checkpoints().run()
        # Logs never opened are as they were found, so their cleanness is that of the last stop.
        if is_clean and (self.was_closed_cleanly or not self._found):
            data = msgspec.json.encode(sizes)
            replace_file(self._disk, f"{self.root}/{CLEAN_STOP_SIZES}", data, sync=True)
            mark = b'{"version":0,"brokerEpoch":-1}'
            replace_file(self._disk, f"{self.root}/{CLEAN_STOP}", mark, sync=True)
        self.abandon()

    def _sizes_of(self, partition: TopicPartition) -> dict[str, int]:
        return {
            entry.name: entry.size_bytes
            for entry in self._disk.entries(self.path(partition))
            if entry.size_bytes and entry.name.endswith(file_names.SEGMENT_SUFFIXES)
        }

    def has_room(self) -> bool:
        """Whether the disk takes something; waits for it."""
        return has_room(self._disk, self.root)

    def abandon(self) -> None:
        """Let go of everything as a killed process would, without writing."""
        for log in self.logs.values():
            log.release()
        self.logs.clear()
        self._lock.release()


def _close_logs(
    logs: Mapping[TopicPartition, Log],
    on_failure: Callable[[TopicPartition, StorageFailed], None],
    run: Callable[[Iterable[FlushJob]], None],
) -> None:
    jobs: dict[TopicPartition, FlushJob] = {}
    for partition, log in logs.items():
        try:
            job = log.begin_close()
        except StorageFailed as error:
            on_failure(partition, error)
            continue
        if job is not None:
            jobs[partition] = job
    run(jobs.values())
    for partition, job in jobs.items():
        try:
            logs[partition].finish_close(job)
        except StorageFailed as error:
            on_failure(partition, error)
