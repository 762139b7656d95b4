"""The segments of one log in order, the last of them active; finds things by offset or time.

Invariants:
1. There is at least one segment; base offsets grow; each ends where the next begins, or before.
2. Only the last one is active.
3. Nothing is read over a hole: where a segment lacks what it should have, reading there fails.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from ottla.errors import CorruptBatch
from ottla.model.file_region import FileRegion
from ottla.model.ids import Position
from ottla.storage.segment import Segment, SegmentInfo, TimestampedOffset
from ottla.storage.segment_place import SegmentPlace
from ottla.storage.segment_trust import trusted_bytes
from ottla.storage.transaction_index import AbortedTransaction


class Segments:
    """An ordered list that knows which segment an offset is in."""

    __slots__ = ("_bases", "_segments", "active", "cuts", "may_have_gaps", "place")

    def __init__(self, place: SegmentPlace, segments: Iterable[Segment]) -> None:
        self.place = place
        self._segments = list(segments)
        self._bases: list[int] = [segment.base_offset for segment in self._segments]
        self.active = self._segments[-1]
        self.may_have_gaps = False
        """Whether compaction may have left segments without the offsets before the next one."""
        self.cuts = 0
        """How often the log was truncated; work begun before a cut is void."""

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    def push(self, segment: Segment) -> None:
        """A new active segment."""
        assert segment.base_offset > self.active.base_offset, "segments grow"
        self._segments.append(segment)
        self._bases.append(segment.base_offset)
        self.active = segment

    def roll(self, now_ms: int) -> None:
        """Seal the active segment and begin a new one. On OSError nothing has changed."""
        old = self.active
        new = Segment(self.place, old.end_offset, index_interval_bytes=old.index_interval_bytes)
        old.write_indexes()
        new.create(now_ms)
        old.seal(now_ms)
        self.push(new)

    def truncate_to(self, offset: int) -> list[Segment]:
        """Cut at `offset`, which is not below the first base; the segments that are gone."""
        self.cuts += 1
        gone = [segment for segment in self._segments if segment.base_offset > offset]
        last = next(s for s in reversed(self._segments) if s.base_offset <= offset)
        last.truncate_to(offset)
        self.replace(gone, ())
        if not last.is_active:
            last.activate()
        return gone

    def restart_at(self, offset: int, now_ms: int) -> None:
        """Let go of all segments and begin again with an empty one."""
        self.cuts += 1
        new = Segment(self.place, offset, index_interval_bytes=self.active.index_interval_bytes)
        new.create(now_ms)
        self.replace(list(self._segments), [new])

    def infos(self) -> list[SegmentInfo]:
        return [segment.info() for segment in self._segments]

    def replace(self, gone: Iterable[Segment], new: Iterable[Segment]) -> None:
        """Swap some segments for others that cover no more than they did."""
        missing = {id(segment) for segment in gone}
        kept = [segment for segment in self._segments if id(segment) not in missing]
        self._segments = sorted([*kept, *new], key=lambda segment: segment.base_offset)
        self._bases = [segment.base_offset for segment in self._segments]
        self.active = self._segments[-1]

    def at_or_after(self, offset: int) -> Iterator[Segment]:
        """The segment that may hold `offset`, and those after it."""
        index = max(bisect_right(self._bases, offset) - 1, 0)
        return iter(self._segments[index:])

    def read(
        self, offset: int, bytes_max: int, end: int, *, at_least_one: bool
    ) -> FileRegion | None:
        """Whole batches from the one that holds `offset`, all of them below `end`.

        The last may be cut by `bytes_max`, where the index does not help to do without it. None
        where there is nothing to read.
        """
        segment = self.active
        position, batch_bytes = Position(0), 0
        if offset >= segment.base_offset:
            position, batch_bytes = segment.locate(offset)
        else:
            for segment in self.at_or_after(offset):
                position, batch_bytes = segment.locate(offset)
                if batch_bytes:
                    break
                if segment.end_offset > offset and not self.may_have_gaps:
                    # Going on behind it would hide from the reader that something is gone.
                    raise CorruptBatch(
                        f"{segment.path} is damaged: it has no readable batch for offset {offset},"
                        f" and should have all to {segment.end_offset}; see `ottla log verify`"
                    )
        limit = segment.size_bytes if end >= segment.end_offset else segment.locate(end)[0]
        size = limit - position
        if size <= 0 or not batch_bytes:
            return None
        if size > bytes_max:
            size = bytes_max
            if batch_bytes > bytes_max:
                if not at_least_one:
                    return None
                size = batch_bytes
            else:
                # Of a batch that is cut a reader has no use: it would be sent for nothing.
                whole = segment.indexes().offsets.position_near(position + bytes_max) - position
                if whole >= max(batch_bytes, bytes_max // 2):
                    size = whole
        if position < segment.untrusted_end:
            size = trusted_bytes(segment, position, size)
            if size < min(batch_bytes, bytes_max):
                raise CorruptBatch(
                    f"{segment.path} is damaged at byte {position}: what stands there for offset"
                    f" {offset} cannot be a batch; see `ottla log verify`"
                )
        return FileRegion(segment.file(), position, size)

    def find_timestamp(self, timestamp: int, start_offset: int) -> TimestampedOffset | None:
        """The first record at or past `start_offset` that is not earlier than `timestamp`."""
        for segment in self.at_or_after(start_offset):
            if segment.max_timestamp >= timestamp:
                found = segment.find_timestamp(timestamp, start_offset)
                if found is not None:
                    return found
        return None

    def find_max_timestamp(self, start_offset: int) -> TimestampedOffset | None:
        """The first record with the latest timestamp of all."""
        latest = max(self._segments, key=lambda segment: segment.max_timestamp)
        if latest.max_timestamp < 0:
            return None
        return latest.find_timestamp(latest.max_timestamp, start_offset)

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """Aborted transactions with records in [start, end).

        A transaction is listed where it ended, which may be far past `end`; the search stops once
        an entry's last stable offset shows that no earlier transaction was open any more.
        """
        found: list[AbortedTransaction] = []
        for segment in self.at_or_after(start):
            index = segment.transactions()
            if not index.entries:
                continue
            found += index.overlapping(start, end)
            if any(entry.last_stable_offset >= end for entry in index.entries):
                break
        return found
