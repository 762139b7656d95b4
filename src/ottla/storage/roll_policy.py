"""When a segment is full or too old. Decides only; the log rolls."""

from __future__ import annotations

from zlib import crc32

from ottla.records.batch import RecordBatch
from ottla.settings.topic import TopicSettings
from ottla.storage.offset_index import ENTRY_BYTES, RELATIVE_OFFSET_MAX
from ottla.storage.segment import POSITION_MAX, Segment


class RollPolicy:
    """The limits of the active segment, worked out once for it so that an append only compares."""

    __slots__ = ("_begun_ms", "_index_entries_max", "_segment_bytes", "_settings", "_time_limit_ms")

    def __init__(self, settings: TopicSettings, now_ms: int) -> None:
        self._settings = settings
        self._segment_bytes = min(settings.segment_bytes, POSITION_MAX)
        self._index_entries_max = max(settings.segment_index_bytes // ENTRY_BYTES, 1)
        self._begun_ms = now_ms
        self._time_limit_ms: int | None = None

    def begin(self, now_ms: int) -> None:
        """There is a new active segment, or its first batch."""
        self._begun_ms = now_ms
        self._time_limit_ms = None

    def _time_limit(self, segment: Segment) -> int:
        """How late a batch may be: counted from the first one's timestamp, if it has one."""
        start_ms = segment.first_timestamp
        if start_ms < 0:
            start_ms = segment.modified_ms or self._begun_ms
        # Spread over the jitter by name, so that logs created together do not all roll together.
        jitter_ms = crc32(segment.path.encode()) % (self._settings.segment_jitter_ms + 1)
        return start_ms + self._settings.segment_ms - jitter_ms

    def must_roll(
        self, segment: Segment, size_bytes: int, batches: list[RecordBatch], now_ms: int
    ) -> bool:
        """Would `size_bytes` more be too much for `segment`, which is not empty?"""
        last = batches[-1]
        if (
            segment.size_bytes + size_bytes > self._segment_bytes
            or last.base_offset + last.last_offset_delta - segment.base_offset > RELATIVE_OFFSET_MAX
            or segment.index_entries >= self._index_entries_max
        ):
            return True
        limit_ms = self._time_limit_ms
        if limit_ms is None:
            limit_ms = self._time_limit_ms = self._time_limit(segment)
        return (last.max_timestamp if segment.first_timestamp >= 0 else now_ms) > limit_ms
