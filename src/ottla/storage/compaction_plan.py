"""Whether a log is worth compacting, and how far. Decides only.

A segment can be compacted when it is sealed, holds no undecided transaction, and is old enough.
"""

from __future__ import annotations

import msgspec

from ottla.model.ids import Offset
from ottla.settings.topic import TopicSettings
from ottla.storage.offset_index import RELATIVE_OFFSET_MAX
from ottla.storage.segment import SegmentInfo


class CompactionPlan(msgspec.Struct, frozen=True):
    """Runs of segments, each to become one; keys come from [first_dirty_offset, end_offset)."""

    first_dirty_offset: Offset
    end_offset: Offset
    groups: tuple[tuple[SegmentInfo, ...], ...]
    dirty_ratio: float


class CompactionMarks(msgspec.Struct, frozen=True):
    """How far the log was compacted before, and how far it can be at most."""

    first_dirty_offset: Offset
    last_stable_offset: Offset
    oldest_dirty_ms: int | None = None
    """The time of the first record not yet compacted, where `max.compaction.lag.ms` asks for it."""


def plan_compaction(
    segments: list[SegmentInfo], settings: TopicSettings, marks: CompactionMarks, now_ms: int
) -> CompactionPlan | None:
    """What to compact now, or None where it is not worth it. `segments` are all, active last."""
    cleanable = _cleanable(segments[:-1], settings, marks, now_ms)
    dirty = [s for s in cleanable if s.end_offset > marks.first_dirty_offset]
    total_bytes = sum(segment.size_bytes for segment in cleanable)
    dirty_bytes = sum(segment.size_bytes for segment in dirty)
    if not dirty_bytes:
        return None
    ratio = dirty_bytes / total_bytes
    oldest_ms = marks.oldest_dirty_ms
    is_overdue = oldest_ms is not None and now_ms - oldest_ms > settings.max_compaction_lag_ms
    if ratio < settings.min_cleanable_dirty_ratio and not is_overdue:
        return None
    return CompactionPlan(
        first_dirty_offset=max(marks.first_dirty_offset, cleanable[0].base_offset),
        end_offset=cleanable[-1].end_offset,
        groups=group_by_size(cleanable, settings.segment_bytes),
        dirty_ratio=ratio,
    )


def _cleanable(
    sealed: list[SegmentInfo], settings: TopicSettings, marks: CompactionMarks, now_ms: int
) -> list[SegmentInfo]:
    youngest_ms = now_ms - settings.min_compaction_lag_ms
    found: list[SegmentInfo] = []
    for segment in sealed:
        is_dirty = segment.end_offset > marks.first_dirty_offset
        if segment.end_offset > marks.last_stable_offset:
            break
        if is_dirty and settings.min_compaction_lag_ms and segment.max_timestamp > youngest_ms:
            break
        found.append(segment)
    return found


def group_by_size(
    segments: list[SegmentInfo], segment_bytes: int
) -> tuple[tuple[SegmentInfo, ...], ...]:
    """Neighbours that fit into one segment together, by their size before compaction."""
    groups: list[list[SegmentInfo]] = []
    size_bytes = 0
    for segment in segments:
        size_bytes += segment.size_bytes
        if (
            not groups
            or size_bytes > segment_bytes
            or segment.end_offset - groups[-1][0].base_offset > RELATIVE_OFFSET_MAX
        ):
            groups.append([])
            size_bytes = segment.size_bytes
        groups[-1].append(segment)
    return tuple(tuple(group) for group in groups)
