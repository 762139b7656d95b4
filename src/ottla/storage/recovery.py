"""Opening a log: what a clean stop left is believed, anything else is looked at again.

Rules:
1. After a clean stop no data is scanned beyond the last index entry, and no sealed file is opened.
2. After an unclean stop everything from the recovery point on is verified; at the first batch that
   is torn, damaged or out of order the log is cut and later segments are dropped.
3. Below the recovery point nothing is cut or lost silently. What costs nothing is compared: the
   sizes of data files after a clean stop, after another where each segment ends. Where the last
   file cannot even be walked that far, what is cut is set aside under `.damaged` and reported.
4. A segment began where the log ended then. What an earlier one holds past that had been cut off,
   and the disk did not keep the cut: it is cut again. One that ends before it has lost its end, and
   the log is cut there.
5. Indexes, snapshots and the epoch checkpoint can be made anew from the data, and are when missing,
   damaged, or not of the size a clean stop noted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ottla.model.clock import Clock
from ottla.model.ids import LeaderEpoch, Offset, Position
from ottla.settings.topic import TopicSettings
from ottla.storage import file_names
from ottla.storage.batch_scan import verify, walk
from ottla.storage.compaction_swap import settle_interrupted
from ottla.storage.disk import Disk, Entry, replace_file
from ottla.storage.epoch_history import EpochHistory
from ottla.storage.log import Log, LogParts
from ottla.storage.producer_replay import rebuild_producers
from ottla.storage.producer_snapshot import ProducerSnapshots
from ottla.storage.segment import Segment
from ottla.storage.segment_place import SegmentPlace
from ottla.storage.segments import Segments

DAMAGED: Final = ".damaged"
_BEGINNING: Final = Offset(0)


class Opening(msgspec.Struct, frozen=True):
    """What is known about a log before its directory is looked at."""

    place: SegmentPlace
    settings: TopicSettings
    clock: Clock
    start_offset: Offset = _BEGINNING
    """From the checkpoint of log start offsets."""
    recovery_point: Offset = _BEGINNING
    was_closed_cleanly: bool = False
    expected_sizes: Mapping[str, int] | None = None
    """Sizes of the index and snapshot files as the clean stop left them, where it said so."""


class RecoveryReport(msgspec.Struct):
    """What opening had to do; all zero after a clean stop with nothing damaged."""

    batches_verified: int = 0
    bytes_cut: int = 0
    segments_dropped: int = 0
    set_aside: list[str] = msgspec.field(default_factory=list)
    rebuilt: list[str] = msgspec.field(default_factory=list)
    lost: list[str] = msgspec.field(default_factory=list)
    """A sentence for each thing that should be there and is not, or cannot be true."""


class OpenedLog(msgspec.Struct, frozen=True):
    """A log, and what it took to open it."""

    log: Log
    report: RecoveryReport


def open_log(opening: Opening) -> OpenedLog:
    """Open the log in a directory that exists; an empty one makes an empty log."""
    recovery = _Recovery(opening)
    return OpenedLog(recovery.open(), recovery.report)


class _Flushed(msgspec.Struct, frozen=True):
    """The part of a segment before the recovery point, and whether nothing of it is missing."""

    position: Position
    next_offset: Offset
    is_whole: bool


class _Recovery:
    """One opening, step by step."""

    def __init__(self, opening: Opening) -> None:
        self.report = RecoveryReport()
        self._opening = opening
        self._place = opening.place
        self._disk: Disk = opening.place.disk
        self._rebuild_from: Offset | None = None
        """The base of the first segment whose transaction index is not to be believed."""

    def open(self) -> Log:
        opening = self._opening
        entries = {e.name: e for e in settle_interrupted(self._disk, self._place.directory)}
        found = self._find_segments(entries)
        if opening.was_closed_cleanly:
            self._compare_sizes(found, entries)
            is_whole = self._find_end(found[-1])
        if not opening.was_closed_cleanly or not is_whole:
            found = self._recover(found)
        active = found[-1]
        if not active.is_active:
            active.activate()
        segments = Segments(self._place, found)
        start_offset = self._start_offset(segments)
        snapshots = ProducerSnapshots(self._disk, self._place.directory, entries)
        self._remove_stray_snapshots(segments, snapshots)
        parts = LogParts(
            segments=segments,
            epochs=self._open_epochs(segments, start_offset),
            producers=rebuild_producers(segments, snapshots, index_from=self._rebuild_from),
            snapshots=snapshots,
            start_offset=start_offset,
            recovery_point=min(
                active.end_offset if opening.was_closed_cleanly else opening.recovery_point,
                active.end_offset,
            ),
        )
        active.release()  # thousands of logs are opened at start, and most lie idle
        log = Log(parts, opening.settings, opening.clock)
        has_lost = opening.recovery_point > active.end_offset
        if has_lost or self.report.bytes_cut or self.report.segments_dropped:
            log.flusher.cut(active.end_offset)
        return log

    def _start_offset(self, segments: Segments) -> Offset:
        """As the checkpoint says, unless that would hide a log that does not reach so far."""
        first, end = segments.first.base_offset, segments.active.end_offset
        noted = self._opening.start_offset
        if noted > end and end > first:
            self.report.lost.append(
                f"the noted start offset {noted} is past the end {end}, and is not believed:"
                f" the log begins at {first}"
            )
            return first
        if self._opening.recovery_point > end:
            self.report.lost.append(
                f"the log ends at {end}, and was flushed to {self._opening.recovery_point}"
            )
        return min(max(noted, first), end)

    # --- what is there ---------------------------------------------------------------------------

    def _find_segments(self, entries: Mapping[str, Entry]) -> list[Segment]:
        interval = self._opening.settings.index_interval_bytes
        found: list[Segment] = []
        for name in sorted(entries):
            parsed = file_names.parse(name)
            if parsed is None or parsed[1] != file_names.LOG:
                continue
            segment = Segment(self._place, parsed[0], index_interval_bytes=interval)
            segment.size_bytes = segment.untrusted_end = entries[name].size_bytes
            segment.modified_ms = entries[name].modified_ms
            if found:
                found[-1].end_offset = segment.base_offset
            found.append(segment)
        if not found:
            new = Segment(self._place, self._opening.start_offset, index_interval_bytes=interval)
            new.create(self._opening.clock.now_ms())
            found.append(new)
        return found

    def _compare_sizes(self, found: list[Segment], entries: Mapping[str, Entry]) -> None:
        """Rebuild what is not as the clean stop left it."""
        expected = self._opening.expected_sizes
        if expected is None:
            return
        self._compare_data(found, entries, expected)
        for segment in found:
            for path in segment.paths()[1:]:
                name = path.rpartition("/")[2]
                entry = entries.get(name)
                if (entry.size_bytes if entry else 0) == expected.get(name, 0):
                    continue
                self.report.rebuilt.append(name)
                if name.endswith(file_names.TRANSACTION_INDEX):
                    self._distrust_transactions(segment)
                else:
                    segment.rebuild_indexes()

    def _compare_data(
        self, found: list[Segment], entries: Mapping[str, Entry], expected: Mapping[str, int]
    ) -> None:
        """Say which data files have another size than the clean stop left them with, or are gone.

        Nothing is repaired: below the recovery point nothing is cut. Reading there fails.
        """
        for name, size_bytes in expected.items():
            if name.endswith(file_names.LOG) and name not in entries:
                self.report.lost.append(f"{name} is gone, with {size_bytes} bytes of records")
        for index, segment in enumerate(found):
            name = segment.path.rpartition("/")[2]
            wanted = expected.get(name)
            if wanted is None or wanted == segment.size_bytes:
                continue
            said = f"{name} has {segment.size_bytes} bytes, and had {wanted} at the last stop"
            if index < len(found) - 1:
                said += self._missing(segment, found[index + 1].base_offset)
            self.report.lost.append(said)

    def _missing(self, segment: Segment, next_base: Offset) -> str:
        """Which offsets a sealed segment lacks at its end; empty where none."""
        segment.rebuild_indexes()
        segment.learn_end()
        end, segment.end_offset = segment.end_offset, next_base
        return f": offsets {end} to {next_base - 1} cannot be read" if end < next_base else ""

    def _distrust_transactions(self, segment: Segment) -> None:
        if self._rebuild_from is None or segment.base_offset < self._rebuild_from:
            self._rebuild_from = segment.base_offset

    def _find_end(self, last: Segment) -> bool:
        """Learn where the last segment ends; False where it does not end with a whole batch."""
        return last.is_active or last.learn_end()

    # --- an unclean stop -------------------------------------------------------------------------

    def _recover(self, found: list[Segment]) -> list[Segment]:
        """Verify from the recovery point on; the segments that are left."""
        point = self._opening.recovery_point
        for index, segment in enumerate(found):
            is_last = index == len(found) - 1
            if not is_last:
                self._cut_again(segment, found[index + 1].base_offset)
            if segment.end_offset < point and not is_last:
                self._report_hole(segment, found[index + 1].base_offset)
                continue
            self._distrust_transactions(segment)
            is_whole = self._verify(segment)
            if not is_last and (not is_whole or segment.end_offset < found[index + 1].base_offset):
                self._drop(found[index + 1 :])
                return found[: index + 1]
        return found

    def _cut_again(self, segment: Segment, next_base: Offset) -> None:
        """Cut what the segment holds of what belongs to the next one."""
        position, batch_bytes = segment.locate(next_base)
        if batch_bytes:
            self.report.bytes_cut += segment.size_bytes - position
            segment.truncate_to(next_base)
            segment.end_offset = next_base

    def _report_hole(self, segment: Segment, next_base: Offset) -> None:
        """Say it where a flushed segment does not end where the next begins.

        Compaction by Apache Kafka leaves such gaps, and nothing is missing in them.
        """
        if self._opening.settings.is_compacted or segment.locate(next_base - 1)[1]:
            return
        name = segment.path.rpartition("/")[2]
        self.report.lost.append(f"{name} has lost its end{self._missing(segment, next_base)}")

    def _verify(self, segment: Segment) -> bool:
        """Check one segment, cut it at the first bad batch and index it; True if it was whole."""
        file = segment.file()
        size = file.size()
        flushed = self._skip_flushed(segment, size)
        position, next_offset = flushed.position, flushed.next_offset
        if flushed.is_whole:
            for verified in verify(file, position, size, next_offset=next_offset):
                self.report.batches_verified += 1
                next_offset = verified.batch.next_offset
                position = Position(verified.position + verified.batch.size_bytes)
        if position < size:
            if not flushed.is_whole:
                self._set_aside(segment, position, size)
            self.report.bytes_cut += size - position
            file.truncate(position)
        segment.size_bytes = position
        segment.end_offset = next_offset
        segment.rebuild_indexes()
        return position == size

    def _skip_flushed(self, segment: Segment, size: int) -> _Flushed:
        """Where the first batch past the recovery point begins, by the headers before it.

        Compaction leaves gaps between batches: the point may lie in one.
        """
        position, next_offset = Position(0), segment.base_offset
        for header in walk(segment.file(), 0, size):
            if header.base_offset < next_offset:
                return _Flushed(position, next_offset, is_whole=False)
            if header.last_offset >= self._opening.recovery_point:
                return _Flushed(position, next_offset, is_whole=True)
            next_offset = Offset(header.last_offset + 1)
            position = Position(header.position + header.size_bytes)
        is_whole = position == size or next_offset >= self._opening.recovery_point
        return _Flushed(position, next_offset, is_whole=is_whole)

    def _set_aside(self, segment: Segment, position: Position, size: int) -> None:
        path = f"{segment.path}.{position}{DAMAGED}"
        data = segment.file().read_at(position, size - position)
        replace_file(self._disk, path, data, sync=True)
        self.report.set_aside.append(path)

    def _drop(self, segments: list[Segment]) -> None:
        for segment in segments:
            self.report.segments_dropped += 1
            self.report.bytes_cut += segment.size_bytes
            segment.release()
            for path in segment.paths():
                self._disk.remove(path)

    # --- what stands beside the data -------------------------------------------------------------

    def _remove_stray_snapshots(self, segments: Segments, snapshots: ProducerSnapshots) -> None:
        """Keep those that stand at a segment's beginning, and the newest not past the end."""
        bases = {segment.base_offset for segment in segments}
        end = segments.active.end_offset
        past_newest = False
        for offset in snapshots.offsets():
            if offset > end or (past_newest and offset not in bases):
                snapshots.remove(offset)
            elif offset <= end:
                past_newest = True

    def _open_epochs(self, segments: Segments, start_offset: Offset) -> EpochHistory:
        path = f"{self._place.directory}/{file_names.EPOCHS}"
        end_offset = segments.active.end_offset
        history = EpochHistory.load(self._disk, path)
        scan_from = self._rebuild_from
        if history is None:
            history = EpochHistory(self._disk, path)
            scan_from = segments.first.base_offset
            if end_offset > scan_from:
                self.report.rebuilt.append(file_names.EPOCHS)
        else:
            history.is_synced = self._opening.was_closed_cleanly
        active_base = segments.active.base_offset
        in_file = history.started_before(active_base)
        if scan_from is not None:
            history.truncate_end(scan_from)
            for segment in segments.at_or_after(scan_from):
                for header in walk(segment.file(), 0, segment.size_bytes):
                    if header.leader_epoch > history.latest:
                        history.assign(LeaderEpoch(header.leader_epoch), Offset(header.base_offset))
        # A leader that has not written yet may have noted its epoch at the very end.
        history.truncate_end(end_offset + self._opening.was_closed_cleanly)
        history.truncate_start(start_offset)
        if history.started_before(active_base) != in_file:
            history.write()
        return history
