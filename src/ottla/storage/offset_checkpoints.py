"""The four checkpoint files of a data directory: offsets noted of each log, in memory and on disk.

Does not know which logs there are.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final

from ottla.model.ids import Offset, TopicPartition
from ottla.storage import checkpoint
from ottla.storage.checkpoint import CheckpointJob
from ottla.storage.disk import Disk
from ottla.storage.log import Log

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
START_OFFSETS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
FILES: Final = (RECOVERY_POINTS, START_OFFSETS, HIGH_WATERMARKS, CLEANER_OFFSETS)
_BEGINNING: Final = Offset(0)


class OffsetCheckpoints:
    """What the files hold, and what they are to hold next."""

    def __init__(self, disk: Disk, root: str) -> None:
        self._disk = disk
        self._root = root
        self._points: dict[str, dict[TopicPartition, Offset]] = {name: {} for name in FILES}
        self._written: dict[str, Mapping[TopicPartition, Offset]] = {}

    def read(self) -> None:
        """Take what the files say; nothing from one that is missing or damaged."""
        for name in FILES:
            self._points[name] = checkpoint.read_offsets(self._disk, f"{self._root}/{name}")

    def get(self, name: str, partition: TopicPartition, default: Offset = _BEGINNING) -> Offset:
        return self._points[name].get(partition, default)

    def ends_of_missing(self, found: Container[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Where logs ended, at least, that are noted here and were not found."""
        ends: dict[TopicPartition, Offset] = {}
        for name in (RECOVERY_POINTS, HIGH_WATERMARKS):
            for partition, end in self._points[name].items():
                if partition not in found and end > ends.get(partition, 0):
                    ends[partition] = end
        return ends

    def take(self, partition: TopicPartition, log: Log) -> None:
        """Note how far a log is now."""
        points = self._points
        points[RECOVERY_POINTS][partition] = log.recovery_point
        points[HIGH_WATERMARKS][partition] = log.high_watermark
        if log.start_offset > log.segments.first.base_offset:
            points[START_OFFSETS][partition] = log.start_offset
        else:
            points[START_OFFSETS].pop(partition, None)
        if log.settings.is_compacted:
            points[CLEANER_OFFSETS][partition] = log.first_dirty_offset

    def forget(self, partition: TopicPartition) -> None:
        for points in self._points.values():
            points.pop(partition, None)

    def begin(self) -> CheckpointJob:
        """The offsets that have changed since the last time, to be written in a thread."""
        changed = {
            name: dict(points)
            for name, points in self._points.items()
            if self._written.get(name) != points
        }
        return CheckpointJob(self._disk, self._root, changed, self._written)
