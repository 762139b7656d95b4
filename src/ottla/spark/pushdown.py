"""Filters on partition, offset and timestamp that spare reading. Pure.

A filter on partition or offset is kept by choosing ranges; Spark need not look again. One on the
timestamp only moves the start forward, by the first record that is as young; Spark looks again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from ottla.model.ids import TopicPartition
from ottla.spark.offset_ranges import OffsetRange

_OFFSET_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Wanted:
    """What filters leave of a topic's partitions."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    start: int = 0
    end: int = _OFFSET_MAX
    youngest_ms: int | None = None
    """No record before the first of this time is wanted."""

    def has(self, where: TopicPartition) -> bool:
        """Whether anything of the partition is wanted."""
        is_topic = self.topics is None or where.topic in self.topics
        return is_topic and (self.partitions is None or where.partition in self.partitions)

    def narrowed(self, whole: OffsetRange) -> OffsetRange:
        """What is wanted of a range; perhaps nothing."""
        if not self.has(whole.where):
            return OffsetRange(whole.where, whole.start, whole.start)
        start = max(whole.start, self.start)
        return OffsetRange(whole.where, start, max(start, min(whole.end, self.end)))


def push(filters: Iterable[Filter]) -> tuple[Wanted, list[Filter]]:
    """What the filters leave, and those that Spark still has to apply."""
    wanted = Wanted()
    left: list[Filter] = []
    for each in filters:
        narrower = _narrowed(wanted, each)
        if narrower is None:
            left.append(each)
            continue
        wanted = narrower
        if _column(each) == "timestamp":
            left.append(each)
    return wanted, left


def _column(each: Filter) -> str | None:
    path: tuple[str, ...] = getattr(each, "attribute", ())
    return path[0] if len(path) == 1 else None


def _narrowed(wanted: Wanted, each: Filter) -> Wanted | None:
    """None where the filter is of no use here."""
    match _column(each):
        case "partition":
            numbers = _values(each, int)
            return (
                None
                if numbers is None
                else replace(wanted, partitions=_both(wanted.partitions, numbers))
            )
        case "topic":
            names = _values(each, str)
            return None if names is None else replace(wanted, topics=_both(wanted.topics, names))
        case "offset":
            return _by_offset(wanted, each)
        case "timestamp":
            return _by_time(wanted, each)
        case _:
            return None


def _values(each: Filter, kind: type) -> frozenset[Any] | None:
    if isinstance(each, EqualTo) and isinstance(each.value, kind):
        return frozenset({each.value})
    if isinstance(each, In) and all(isinstance(value, kind) for value in each.value):
        return frozenset(each.value)
    return None


def _both(former: frozenset[Any] | None, more: frozenset[Any]) -> frozenset[Any]:
    return more if former is None else former & more


def _by_offset(wanted: Wanted, each: Filter) -> Wanted | None:
    value = getattr(each, "value", None)
    if not isinstance(value, int):
        return None
    match each:
        case EqualTo():
            start, end = value, value + 1
        case GreaterThan():
            start, end = value + 1, _OFFSET_MAX
        case GreaterThanOrEqual():
            start, end = value, _OFFSET_MAX
        case LessThan():
            start, end = 0, value
        case LessThanOrEqual():
            start, end = 0, value + 1
        case _:
            return None
    return replace(wanted, start=max(wanted.start, start), end=min(wanted.end, end))


def _by_time(wanted: Wanted, each: Filter) -> Wanted | None:
    value = getattr(each, "value", None)
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    if not isinstance(each, EqualTo | GreaterThan | GreaterThanOrEqual):
        return None
    youngest_ms = int(value.timestamp() * 1000)
    return replace(wanted, youngest_ms=max(wanted.youngest_ms or 0, youngest_ms))
