"""Compaction: of each key only the latest record stays, at the offset it always had.

Three steps: `begin_compaction` decides and gathers, `CompactionJob.run` reads and writes beside the
log and may take as long as it likes in a thread, `finish_compaction` swaps the result in.

What must stay true:
1. The latest record of every key stays, unless it is a tombstone past its delete horizon.
2. No record moves: offsets, and the order of the log, are as they were.
3. Data of aborted transactions goes; a marker goes only after its data, past its delete horizon.
4. The last batch of each producer stays, if only as an empty one, so that its sequence is known.
5. The offsets of a segment's last batch stay, if only in an empty one, so that the segment ends
   where the next begins: after a power cut, one that does not has lost something.
6. Damage is not cleaned away: a segment that cannot be read to its end ends the job with an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from ottla.errors import CorruptBatch, RecordError
from ottla.model.ids import Offset, ProducerId
from ottla.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, RecordBatch
from ottla.records.record import scan_records
from ottla.records.rewrite import offsets_only
from ottla.settings.declare import LONG_MAX
from ottla.storage import file_names
from ottla.storage.batch_scan import verify
from ottla.storage.compaction_filter import BatchFilter, FilterRules
from ottla.storage.compaction_plan import CompactionMarks, CompactionPlan, plan_compaction
from ottla.storage.compaction_swap import commit_swap, finish_swap
from ottla.storage.disk import Disk
from ottla.storage.log import Log
from ottla.storage.offset_map import OffsetMap
from ottla.storage.segment import Segment, SegmentInfo
from ottla.storage.segment_writer import SegmentWriter
from ottla.storage.transaction_index import AbortedTransactions

MAP_ENTRIES_MAX: Final = 500_000
"""Keys held in memory at once; a log with more is compacted in several goes."""

Pause = Callable[[int], None]
"""Called with the number of bytes just read or written, to wait as a throttle demands."""


class CompactionStats(msgspec.Struct, frozen=True):
    """What a finished compaction did."""

    bytes_before: int
    bytes_after: int
    cleaned_to: Offset


class CompactionJob(msgspec.Struct):
    """A compaction under way. `run` touches only files: sealed segments and its own new ones."""

    disk: Disk
    directory: str
    plan: CompactionPlan
    segments: Mapping[Offset, Segment]
    cuts: int
    """How often the log had been truncated when the job began; a cut in between voids it."""
    aborted: AbortedTransactions
    last_offsets: Mapping[ProducerId, Offset | None]
    now_ms: int
    delete_retention_ms: int
    index_interval_bytes: int
    map_entries_max: int
    cleaned_to: Offset = msgspec.field(default=Offset(0))
    sizes: dict[Offset, int] = msgspec.field(default_factory=dict)
    """The size of each new segment, by its base offset."""
    error: OSError | RecordError | None = None

    def run(self, pause: Pause) -> None:
        """Write the compacted segments as `.cleaned` files; an error is kept for the end."""
        try:
            offset_map = OffsetMap(self.map_entries_max)
            self.cleaned_to = self._fill(offset_map, pause)
            rules = FilterRules(
                cleaned_to=self.cleaned_to,
                now_ms=self.now_ms,
                delete_retention_ms=self.delete_retention_ms,
                last_offsets=self.last_offsets,
            )
            batch_filter = BatchFilter(offset_map, rules, self.aborted)
            for group in self.plan.groups:
                if group[0].base_offset < self.cleaned_to:
                    self._rewrite(group, batch_filter, pause)
        except (OSError, RecordError) as error:
            self.error = error

    def _fill(self, offset_map: OffsetMap, pause: Pause) -> Offset:
        """Learn each key's latest offset; returns how far that went."""
        start = self.plan.first_dirty_offset
        for group in self.plan.groups:
            for info in group:
                if info.end_offset <= start:
                    continue
                for batch in self._batches(info):
                    pause(batch.size_bytes)
                    if batch.attributes & CONTROL_BIT or batch.last_offset < start:
                        continue
                    if batch.attributes & TRANSACTIONAL_BIT and self.aborted.holds(batch):
                        continue
                    for record in scan_records(batch.payload(), batch.shape()):
                        if record.key is None or record.offset < start:
                            continue
                        if not offset_map.put(record.key, record.offset):
                            return Offset(record.offset)
        return self.plan.end_offset

    def _rewrite(
        self, group: tuple[SegmentInfo, ...], batch_filter: BatchFilter, pause: Pause
    ) -> None:
        writer = SegmentWriter(
            self.disk,
            self.directory,
            group[0].base_offset,
            index_interval_bytes=self.index_interval_bytes,
        )
        for info in group:
            for batch in self._batches(info):
                pause(batch.size_bytes)
                kept = batch_filter.apply(batch)
                if kept is None and batch.next_offset == group[-1].end_offset:
                    kept = RecordBatch(memoryview(offsets_only(batch)))
                if kept is not None:
                    writer.append(kept)
        writer.finish(batch_filter.take_aborted())
        pause(writer.size_bytes)
        self.sizes[group[0].base_offset] = writer.size_bytes

    def _batches(self, info: SegmentInfo) -> Iterator[RecordBatch]:
        path = f"{self.directory}/{file_names.file_name(info.base_offset, file_names.LOG)}"
        file = self.disk.open(path)
        position = 0
        try:
            for verified in verify(file, 0, info.size_bytes, next_offset=info.base_offset):
                yield verified.batch
                position = verified.position + verified.batch.size_bytes
        finally:
            file.close()
        if position != info.size_bytes:
            raise CorruptBatch(f"{path} is damaged at byte {position}; it is left as it is")


def begin_compaction(
    log: Log, now_ms: int, *, map_entries_max: int = MAP_ENTRIES_MAX
) -> CompactionJob | None:
    """A job for what is worth compacting in `log` now, if anything."""
    settings = log.settings
    oldest_ms = None
    if settings.max_compaction_lag_ms < LONG_MAX:
        dirty = (s for s in log.segments if s.end_offset > log.first_dirty_offset and s.size_bytes)
        oldest_ms = next((s.first_timestamp for s in dirty), None)
        if oldest_ms is not None and now_ms - oldest_ms > settings.max_compaction_lag_ms:
            log.roll()  # what is overdue may be in the active segment
    marks = CompactionMarks(log.first_dirty_offset, log.last_stable_offset, oldest_ms)
    plan = plan_compaction(log.segments.infos(), settings, marks, now_ms)
    if plan is None:
        return None
    bases = {info.base_offset for group in plan.groups for info in group}
    place = log.segments.place
    return CompactionJob(
        disk=place.disk,
        directory=place.directory,
        plan=plan,
        segments={s.base_offset: s for s in log.segments if s.base_offset in bases},
        cuts=log.segments.cuts,
        aborted=AbortedTransactions(log.segments.aborted_transactions(0, plan.end_offset)),
        last_offsets={
            entry.producer_id: entry.last_batch.last_offset if entry.last_batch else None
            for entry in log.producers.entries()
        },
        now_ms=now_ms,
        delete_retention_ms=settings.delete_retention_ms,
        index_interval_bytes=settings.index_interval_bytes,
        map_entries_max=map_entries_max,
    )


def finish_compaction(log: Log, job: CompactionJob) -> CompactionStats | None:
    """Put the new segments in place of the old; None where the job failed or came too late."""
    current = {id(segment) for segment in log.segments}
    is_overtaken = job.cuts != log.segments.cuts or any(
        id(segment) not in current for segment in job.segments.values()
    )
    if job.error is not None or is_overtaken:
        _remove_cleaned(job)
        return None
    bytes_before = 0
    for group in job.plan.groups:
        if group[0].base_offset in job.sizes:
            bytes_before += sum(info.size_bytes for info in group)
            try:
                _swap(log, job, group)
            except OSError as error:
                # Which files won is only known when the log is opened again.
                raise log.fence(f"compacted segments cannot be put in place: {error}") from error
    log.first_dirty_offset = job.cleaned_to
    return CompactionStats(bytes_before, sum(job.sizes.values()), job.cleaned_to)


def _swap(log: Log, job: CompactionJob, group: tuple[SegmentInfo, ...]) -> None:
    base_offset = group[0].base_offset
    old = [job.segments[info.base_offset] for info in group]
    commit_swap(job.disk, job.directory, base_offset)
    log.discard(old[1:])
    old[0].release()
    finish_swap(job.disk, job.directory, base_offset)
    new = Segment(old[0].place, base_offset, index_interval_bytes=job.index_interval_bytes)
    new.size_bytes = job.sizes[base_offset]
    new.end_offset = group[-1].end_offset
    new.modified_ms = old[-1].modified_ms
    log.segments.replace(old, [new])


def _remove_cleaned(job: CompactionJob) -> None:
    for group in job.plan.groups:
        for suffix in file_names.SEGMENT_SUFFIXES:
            name = file_names.file_name(group[0].base_offset, suffix)
            job.disk.remove(f"{job.directory}/{name}{file_names.CLEANED}")
