"""Which of a log's oldest segments have had their time. Decides only; the log deletes."""

from __future__ import annotations

from collections.abc import Callable

from ottla.settings.topic import TopicSettings
from ottla.storage.log import Log
from ottla.storage.segment import SegmentInfo


def expired(
    segments: list[SegmentInfo],
    settings: TopicSettings,
    now_ms: int,
    *,
    start_offset: int,
    high_watermark: int,
) -> list[SegmentInfo]:
    """The run of oldest segments that nothing obliges the log to keep.

    `segments` are all of the log, the active one last. What is not committed on all replicas stays,
    and so does an empty active segment.
    """
    committed = _count(segments, lambda s: s.end_offset <= high_watermark and s.size_bytes > 0)
    if segments and not segments[-1].size_bytes:
        committed = _count(segments[:-1], lambda s: s.end_offset <= high_watermark)
    count = _count(segments[:-1], lambda s: s.end_offset <= start_offset)
    if settings.is_deleted_by_retention:
        if settings.retention_ms >= 0:
            oldest_ms = now_ms - settings.retention_ms
            count = max(count, _count(segments, lambda s: s.max_timestamp < oldest_ms))
        if settings.retention_bytes >= 0:
            count = max(count, _count_oversized(segments, settings.retention_bytes))
    return segments[: min(count, committed)]


def _count_oversized(segments: list[SegmentInfo], retention_bytes: int) -> int:
    excess = sum(segment.size_bytes for segment in segments) - retention_bytes
    count = 0
    for segment in segments:
        excess -= segment.size_bytes
        if excess < 0:
            break
        count += 1
    return count


def _count(segments: list[SegmentInfo], test: Callable[[SegmentInfo], bool]) -> int:
    """How many segments from the oldest on pass."""
    return next((i for i, segment in enumerate(segments) if not test(segment)), len(segments))


def apply_retention(log: Log, now_ms: int) -> list[SegmentInfo]:
    """Delete what has expired in `log`; returns what that was."""
    gone = expired(
        log.segments.infos(),
        log.settings,
        now_ms,
        start_offset=log.start_offset,
        high_watermark=log.high_watermark,
    )
    if gone:
        log.delete_segments(gone)
    return gone
