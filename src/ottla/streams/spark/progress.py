"""How a query does, in numbers: taken out of what Spark reports about its last micro-batch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ottla.streams.spark.starts import without_count


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """One query. Counts are of records, except for the state, which is counted in pages."""

    name: str
    topics: tuple[str, ...]
    batch_id: int = -1
    """-1 before the first micro-batch."""
    records: int = 0
    """Of the last micro-batch."""
    duration_ms: int = 0
    lag: int = 0
    """What was committed to its topics and not read when it last looked."""
    state_pages: int = 0
    state_bytes: int = 0

    @property
    def records_per_s(self) -> float:
        return self.records * 1000 / self.duration_ms if self.duration_ms else 0.0


def query_progress(
    name: str, topics: tuple[str, ...], report: Mapping[str, Any] | None
) -> QueryProgress:
    """The numbers of a query; `report` is Spark's, None where there is none yet."""
    if report is None:
        return QueryProgress(name, topics)
    source = _source(report)
    begun, ended, latest = (
        _offsets(source.get(which)) for which in ("startOffset", "endOffset", "latestOffset")
    )
    state: list[Mapping[str, Any]] = report.get("stateOperators") or [{}]
    return QueryProgress(
        name,
        topics,
        int(report["batchId"]),
        sum(end - begun.get(where, 0) for where, end in ended.items()),
        int(report.get("durationMs", {}).get("triggerExecution", 0)),
        sum(max(0, end - ended.get(where, 0)) for where, end in latest.items()),
        int(state[0].get("numRowsTotal", 0)),
        int(state[0].get("memoryUsedBytes", 0)),
    )


def read_up_to(report: Mapping[str, Any] | None) -> dict[tuple[str, str], int]:
    """The offsets up to which a query has read, by topic and partition."""
    return _offsets(_source(report).get("endOffset"))


def is_idle(report: Mapping[str, Any] | None) -> bool:
    """Whether there was nothing new in the topics for the last micro-batch."""
    return read_up_to(report) == _offsets(_source(report).get("startOffset"))


def _source(report: Mapping[str, Any] | None) -> Mapping[str, Any]:
    sources: list[Mapping[str, Any]] = (report or {}).get("sources") or [{}]
    return sources[0]


def _offsets(reported: object) -> dict[tuple[str, str], int]:
    """By topic and partition; Spark gives them as JSON, as text or not."""
    told = json.loads(reported) if isinstance(reported, str) else reported
    if not isinstance(told, dict):
        return {}
    return {
        (topic, partition): int(offset)
        for topic, partitions in without_count(told).items()
        for partition, offset in partitions.items()
    }
