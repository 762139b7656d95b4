"""Forcing a log to disk, split so that the slow part can run in a thread.

`Flusher.begin` gathers what must be synced, `FlushJob.run` does it without touching the log, and
`Flusher.finish` moves the recovery point. An error of a sync is final: the kernel may have dropped
the pages, so the log is fenced and nothing past the recovery point is trusted again.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ottla.model.ids import Offset
from ottla.settings.topic import TopicSettings
from ottla.storage import file_names
from ottla.storage.disk import Disk, File
from ottla.storage.segments import Segments


class FlushJob(msgspec.Struct):
    """Everything below `end_offset` is on disk once `run` has returned without an error."""

    disk: Disk
    end_offset: Offset
    begun_ms: int
    cuts: int
    """How often the log had been cut when the job began; a cut in between voids it."""
    files: list[File]
    paths: list[str]
    directory: str | None
    """Set where names in the directory are new."""
    is_after_cut: bool = False
    error: OSError | None = msgspec.field(default=None)

    def run(self) -> None:
        """Sync; the error, if any, is kept for the end. Safe in any one thread."""
        try:
            for file in self.files:
                file.sync()
            for path in self.paths:
                self._sync_path(path)
            if self.directory is not None:
                self.disk.sync_directory(self.directory)
        except OSError as error:
            self.error = error
        self.files.clear()

    def _sync_path(self, path: str) -> None:
        try:
            file = self.disk.open(path)
        except FileNotFoundError:
            return  # deleted by retention meanwhile, or an index that has no entries
        try:
            file.sync()
        finally:
            file.close()


def run_one_by_one(jobs: Iterable[FlushJob]) -> None:
    """All of them, here and now."""
    for job in jobs:
        job.run()


class Flusher:
    """How far the log is safe from a power cut, and since when something is not."""

    __slots__ = ("dirty_since_ms", "has_new_names", "is_cut", "recovery_point")

    def __init__(self, recovery_point: Offset) -> None:
        self.recovery_point = recovery_point
        self.dirty_since_ms: int | None = None
        self.has_new_names = True
        self.is_cut = False
        """Whether something was cut off that a power cut may bring back. Before anything is written
        in its place, the cut has to be synced, or the disk might keep the old, and the new behind
        it; and so has the lower recovery point, or what is written would be taken for safe."""

    def is_due(self, settings: TopicSettings, end_offset: int, now_ms: int) -> bool:
        """Do `flush.messages` or `flush.ms` ask for a flush now?"""
        unflushed = end_offset - self.recovery_point
        if unflushed <= 0:
            return False
        if unflushed >= settings.flush_messages:
            return True
        since = self.dirty_since_ms
        return since is not None and now_ms - since >= settings.flush_ms

    def is_safe(self, end_offset: Offset) -> bool:
        """Whether a power cut would leave the log just as it is."""
        return self.recovery_point == end_offset and not self.is_cut

    def begin(self, segments: Segments, now_ms: int) -> FlushJob:
        """Gather the files with anything past the recovery point in them.

        A segment that ends right there is among them: it may have been sealed after its data was
        synced, so that its indexes are not.
        """
        dirty = [
            segment
            for segment in segments.at_or_after(self.recovery_point - 1)
            if segment.size_bytes or self.is_cut
        ]
        place = segments.place
        paths = [path for s in dirty if not s.is_active for path in s.paths()[1:]]
        if self.has_new_names and not self.recovery_point:
            # The first flush there is: it makes sure whose log this is as well.
            paths.append(f"{place.directory}/{file_names.PARTITION_METADATA}")
        job = FlushJob(
            disk=place.disk,
            end_offset=segments.active.end_offset,
            begun_ms=now_ms,
            cuts=segments.cuts,
            files=[segment.file() for segment in dirty],
            paths=paths,
            directory=place.directory if self.has_new_names else None,
            is_after_cut=self.is_cut,
        )
        self.dirty_since_ms = None
        self.has_new_names = False
        return job

    def finish(self, job: FlushJob, segments: Segments) -> None:
        """Believe a job that went well, unless the log was cut while it ran."""
        if job.error is None and job.cuts == segments.cuts:
            self.recovery_point = max(self.recovery_point, job.end_offset)

    def cut_is_safe(self, job: FlushJob, segments: Segments) -> None:
        """A job that began after the cut has ended, and the recovery point is noted since."""
        if job.error is None and job.cuts == segments.cuts:
            self.is_cut = False

    def cut(self, offset: Offset) -> None:
        """The log ends at `offset` now, and may grow again from there."""
        self.recovery_point = min(self.recovery_point, offset)
        self.has_new_names = True
        self.is_cut = True
