"""The log of one partition: an ordered sequence of record batches on disk, and the marks in it.

Invariants:
1. start_offset <= high_watermark <= end_offset, and recovery_point <= end_offset.
2. The data is written first, then `end_offset` moves, then the producers' state, then the
   transaction index; so a failure half-way leaves less known than is there, never more.
3. After a failed write the tail is cut back to what is known; where that fails too, the log is
   fenced: nothing is appended past an unknown tail until it has been opened anew.
4. The recovery point moves only by a finished flush.

One caller at a time. Does not know roles, replicas or clients; who may write is decided above.
"""

from __future__ import annotations

import msgspec

from ottla.errors import OffsetOutOfRange, StorageFailed
from ottla.model.clock import Clock
from ottla.model.file_region import FileRegion
from ottla.model.ids import NO_TIMESTAMP, LeaderEpoch, Offset
from ottla.records.batch import RecordBatch
from ottla.settings.topic import TopicSettings
from ottla.storage.admission import AdmissionRules, admit, check_replicated
from ottla.storage.deleted_files import DeletedFiles
from ottla.storage.epoch_history import EpochEnd, EpochHistory
from ottla.storage.flush import Flusher, FlushJob
from ottla.storage.producer_replay import find_duplicate, rebuild_producers
from ottla.storage.producer_snapshot import ProducerSnapshots
from ottla.storage.producer_state import EndedTransaction, Origin, ProducerState, RememberedBatch
from ottla.storage.roll_policy import RollPolicy
from ottla.storage.segment import Segment, SegmentInfo, TimestampedOffset
from ottla.storage.segments import Segments


class Appended:
    """What an append did."""

    __slots__ = ("append_time_ms", "base_offset", "end_offset", "is_duplicate", "start_offset")

    def __init__(
        self,
        base_offset: Offset,
        end_offset: Offset,
        append_time_ms: int,
        start_offset: Offset,
        *,
        is_duplicate: bool = False,
    ) -> None:
        self.base_offset = base_offset
        self.end_offset = end_offset
        self.append_time_ms = append_time_ms
        """The broker's stamp, or -1 where records keep their own time."""
        self.start_offset = start_offset
        self.is_duplicate = is_duplicate


class LogParts(msgspec.Struct):
    """What opening a log has found; the log owns all of it from then on."""

    segments: Segments
    epochs: EpochHistory
    producers: ProducerState
    snapshots: ProducerSnapshots
    start_offset: Offset
    recovery_point: Offset


class Log:
    """Append at the end, read from anywhere, forget from the beginning."""

    __slots__ = (
        *("_clock", "_directory", "_fence", "_rolling", "_rules", "flusher"),
        *("_snapshots", "end_offset", "epochs", "first_dirty_offset", "high_watermark"),
        *("deleted", "producers", "segments", "settings", "start_offset"),
    )

    def __init__(self, parts: LogParts, settings: TopicSettings, clock: Clock) -> None:
        self.segments = parts.segments
        self.epochs, self.producers = parts.epochs, parts.producers
        self._snapshots = parts.snapshots
        self._clock, self._directory = clock, parts.segments.place.directory
        self.deleted = DeletedFiles(parts.segments.place.disk)
        self.flusher = Flusher(parts.recovery_point)
        self._fence: str | None = None
        self.start_offset = self.high_watermark = parts.start_offset
        self.end_offset: Offset = parts.segments.active.end_offset
        self.first_dirty_offset = Offset(0)  # below it the log is compacted
        self.configure(settings)

    def configure(self, settings: TopicSettings) -> None:
        """Take new settings; they hold from the next append on."""
        self.settings, self._rules = settings, AdmissionRules(settings)
        self.segments.may_have_gaps = settings.is_compacted
        self.segments.active.index_interval_bytes = settings.index_interval_bytes
        self._rolling = RollPolicy(settings, self._clock.now_ms())

    # --- appending -------------------------------------------------------------------------------

    def append(
        self, records: memoryview, *, leader_epoch: int, origin: Origin = Origin.CLIENT
    ) -> Appended:
        """Check `records`, give them the next offsets and write them.

        They are stamped in place where the view can be written to. A batch that an idempotent
        producer sent before is not written again; the answer is that of the first time.
        """
        if self._fence is not None:
            raise StorageFailed(self._fence)
        now_ms = self._clock.now_ms()
        rules = self._rules
        data, batches = admit(records, rules, now_ms, origin)
        for batch in batches:
            if batch.producer_id >= 0:
                duplicate = find_duplicate(batch, self.producers, self.segments)
                if duplicate is not None:
                    return _first_answer(duplicate, rules, self.start_offset)
        base_offset = self.end_offset
        offset: int = base_offset
        for batch in batches:
            batch.assign(offset, leader_epoch)
            offset += batch.last_offset_delta + 1
        if leader_epoch != self.epochs.latest:
            self.assign_epoch(leader_epoch)
        self._write(data, batches, now_ms)
        append_time_ms = now_ms if rules.stamps_append_time else NO_TIMESTAMP
        return Appended(base_offset, self.end_offset, append_time_ms, self.start_offset)

    def append_as_follower(self, records: memoryview) -> Appended:
        """Write what the leader sent, at the offsets it gave. Only damage is refused."""
        if self._fence is not None:
            raise StorageFailed(self._fence)
        base_offset = self.end_offset
        batches = check_replicated(records, base_offset)
        for batch in batches:
            if batch.leader_epoch != self.epochs.latest:
                self.assign_epoch(batch.leader_epoch, batch.base_offset)
        if batches:
            base_offset = batches[0].base_offset
            self._write(records, batches, self._clock.now_ms())
        return Appended(base_offset, self.end_offset, NO_TIMESTAMP, self.start_offset)

    def _write(self, data: memoryview, batches: list[RecordBatch], now_ms: int) -> None:
        segment = self.segments.active
        if segment.size_bytes and self._rolling.must_roll(segment, len(data), batches, now_ms):
            segment = self.roll()
        is_first = not segment.size_bytes
        try:
            segment.append(data, batches)
        except OSError as error:
            raise self._write_failed(segment, error) from error
        self.end_offset = segment.end_offset
        if is_first:
            self._rolling.begin(now_ms)
        if self.flusher.dirty_since_ms is None:
            self.flusher.dirty_since_ms = now_ms
        for batch in batches:
            if batch.producer_id >= 0:
                ended = self.producers.record(batch)
                if ended is not None and ended.is_aborted:
                    self._index_aborted(ended)

    def _write_failed(self, segment: Segment, error: OSError) -> StorageFailed:
        try:
            segment.cut_unknown_tail()
        except OSError as second:
            return self.fence(f"a write failed ({error}) and so did cutting it off ({second})")
        return _failed(self._directory, error)

    def _index_aborted(self, ended: EndedTransaction) -> None:
        try:
            self.segments.active.append_aborted(self.producers.aborted(ended))
        except OSError as error:
            raise self.fence(f"an aborted transaction cannot be noted: {error}") from error

    def fence(self, reason: str) -> StorageFailed:
        """Take no more writes. Returns the error to raise."""
        self._fence = f"{self._directory} takes no writes until it is opened again: {reason}"
        return StorageFailed(self._fence)

    @property
    def is_fenced(self) -> bool:
        return self._fence is not None

    def assign_epoch(self, epoch: int, start_offset: Offset | None = None) -> None:
        """A leader of `epoch` begins to write, at the end unless said otherwise; or may never."""
        start = self.end_offset if start_offset is None else start_offset
        self.epochs.assign(LeaderEpoch(epoch), start)

    def roll(self) -> Segment:
        """Close the active segment, if it holds anything, and begin a new one."""
        segments = self.segments
        if segments.active.size_bytes:
            now_ms = self._clock.now_ms()
            try:
                self._snapshots.write(self.end_offset, self.producers.entries())
                self.epochs.write()
                segments.roll(now_ms)
            except OSError as error:
                raise _failed(self._directory, error) from error
            self.flusher.has_new_names = True
            self._rolling.begin(now_ms)
        return segments.active

    # --- reading ---------------------------------------------------------------------------------

    def read(
        self, offset: int, *, bytes_max: int, end: int, at_least_one: bool = True
    ) -> FileRegion | None:
        """Batches from the one that holds `offset` on, none of which reaches `end`.

        None where there is nothing to read. With `at_least_one` the first batch comes whole even
        when it is larger than `bytes_max`.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange(offset, self.start_offset, self.end_offset)
        if offset >= end:
            return None
        try:
            return self.segments.read(offset, bytes_max, end, at_least_one=at_least_one)
        except OSError as error:
            raise _failed(self._directory, error) from error

    def offset_for_timestamp(self, timestamp: int) -> TimestampedOffset | None:
        """The first record that is not earlier than `timestamp`."""
        return self.segments.find_timestamp(timestamp, self.start_offset)

    def offset_of_max_timestamp(self) -> TimestampedOffset | None:
        """The first record with the latest timestamp of all."""
        return self.segments.find_max_timestamp(self.start_offset)

    def epoch_end(self, epoch: int) -> EpochEnd | None:
        """Where `epoch` ended here, under the largest epoch known that is not later."""
        return self.epochs.end_of(LeaderEpoch(epoch), self.end_offset)

    # --- marks -----------------------------------------------------------------------------------

    def advance_high_watermark(self, offset: int) -> None:
        """Everything below `offset` is committed. It never goes back, nor past the end."""
        offset = min(offset, self.end_offset)
        if offset > self.high_watermark:
            self.high_watermark = Offset(offset)
            self.producers.advance_high_watermark(offset)

    @property
    def last_stable_offset(self) -> Offset:
        """Below this, every transaction is deleted, or has ended and is committed everywhere."""
        first = self.producers.first_unstable_offset
        stable = self.high_watermark if first is None else max(first, self.start_offset)
        return min(stable, self.high_watermark)

    @property
    def recovery_point(self) -> Offset:
        """Below this, everything is safe from a power cut."""
        return self.flusher.recovery_point

    def needs_flush(self, now_ms: int) -> bool:
        """Do `flush.messages` or `flush.ms` ask for a flush now?"""
        return self.flusher.is_due(self.settings, self.end_offset, now_ms)

    def begin_flush(self) -> FlushJob:
        """What to sync so that everything written up to now is safe; run it in a thread."""
        job = self.flusher.begin(self.segments, self._clock.now_ms())
        self.epochs.join(job)
        return job

    def finish_flush(self, job: FlushJob) -> None:
        """Move the recovery point; or fence the log, where the disk could not keep its word."""
        self.flusher.finish(job, self.segments)
        if job.error is not None:
            raise self.fence(f"the disk could not be synced: {job.error}") from job.error

    # --- forgetting ------------------------------------------------------------------------------

    def delete_records_before(self, offset: int) -> Offset:
        """Records below `offset` are gone; returns where the log begins now."""
        if offset > self.high_watermark:
            raise OffsetOutOfRange(offset, self.start_offset, self.high_watermark)
        if offset > self.start_offset:
            self.start_offset = Offset(offset)
            self.epochs.truncate_start(self.start_offset)
        return self.start_offset

    def delete_segments(self, infos: list[SegmentInfo]) -> None:
        """Let go of the oldest segments, which `retention.expired` has named."""
        bases = {info.base_offset for info in infos}
        if self.segments.active.base_offset in bases:
            self.roll()
        gone = [s for s in self.segments if s.base_offset in bases and not s.is_active]
        self.segments.replace(gone, ())
        self.discard(gone)
        self.start_offset = max(self.start_offset, self.segments.first.base_offset)
        self.high_watermark = max(self.high_watermark, self.start_offset)
        self.epochs.truncate_start(self.start_offset)

    def discard(self, segments: list[Segment]) -> None:
        """Rename the files of segments that are no part of the log, to be removed in a while."""
        due_ms = self._clock.now_ms() + self.settings.file_delete_delay_ms
        for segment in segments:
            segment.release()
            snapshot = self._snapshots.forget(segment.base_offset)
            self.deleted.add([*segment.paths(), snapshot], due_ms)

    def truncate_to(self, offset: int) -> None:
        """Cut off everything at and past `offset`."""
        if offset >= self.end_offset:
            # An epoch that was noted here, but never written in, goes even so.
            self.epochs.truncate_end(offset)
            return
        if offset < self.segments.first.base_offset:
            self.restart_at(offset)
            return
        self.flusher.cut(Offset(offset))
        self.discard(self.segments.truncate_to(offset))
        self._end_moved()

    def restart_at(self, offset: int) -> None:
        """Drop everything and begin again, empty, at `offset`."""
        self.flusher.cut(Offset(offset))
        self.discard(list(self.segments))
        self.segments.restart_at(offset, self._clock.now_ms())
        self.start_offset = self.high_watermark = Offset(offset)
        self._end_moved()
        self.epochs.write()

    def _end_moved(self) -> None:
        self.end_offset = end = self.segments.active.end_offset
        self._snapshots.remove_after(end)
        self.epochs.truncate_end(end)
        self.producers = rebuild_producers(self.segments, self._snapshots)
        self.start_offset = min(self.start_offset, end)
        self.high_watermark = min(self.high_watermark, end)
        self.producers.advance_high_watermark(self.high_watermark)
        self.first_dirty_offset = min(self.first_dirty_offset, end)
        self._rolling.begin(self._clock.now_ms())

    def close(self) -> None:
        """Write what only memory holds, sync everything, and let go of the files."""
        if (job := self.begin_close()) is not None:
            job.run()
            self.finish_close(job)

    def begin_close(self) -> FlushJob | None:
        """Write what only memory holds; what to sync then. None where a close has done it all."""
        end, snapshots = self.end_offset, self._snapshots
        if self.flusher.is_safe(end) and self.epochs.is_synced and end in snapshots.offsets():
            self.release()
            return None
        try:
            self.segments.active.write_indexes()
            snapshots.write(end, self.producers.entries())
            self.epochs.write()
        except OSError as error:
            raise _failed(self._directory, error) from error
        job = self.begin_flush()
        job.paths += [*self.segments.active.paths()[1:], snapshots.path(end)]
        job.directory = self._directory
        return job

    def finish_close(self, job: FlushJob) -> None:
        """Let go of the files; StorageFailed where they could not be synced."""
        self.finish_flush(job)
        self.release()

    def release(self) -> None:
        """Let go of the files without writing anything."""
        for segment in self.segments:
            segment.release()


def _failed(directory: str, error: OSError) -> StorageFailed:
    return StorageFailed(f"{directory}: {error}")


def _first_answer(batch: RememberedBatch, rules: AdmissionRules, start_offset: Offset) -> Appended:
    """What the producer was told when it sent this batch for the first time."""
    time_ms = batch.timestamp if rules.stamps_append_time else NO_TIMESTAMP
    end_offset = Offset(batch.last_offset + 1)
    return Appended(batch.base_offset, end_offset, time_ms, start_offset, is_duplicate=True)
