"""Where reading a topic begins and ends, as people say it, to ranges of offsets.

A bound is `"earliest"`, `"latest"`, an offset, a point in time (the first record at or after it),
or a mapping from partitions to such; a partition the mapping does not name has the usual bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from ottla.clients.client import Client
from ottla.clients.failures import TopicNotFound, WrongUse
from ottla.clients.offsets import EARLIEST, LATEST, list_offsets
from ottla.model.ids import TopicPartition
from ottla.records.arrow_decode import Window

Point = str | int | datetime
Bound = Point | Mapping[int, Point]

_NAMES: Final = {"earliest": EARLIEST, "latest": LATEST}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


async def ranges_between(
    client: Client,
    topic: str,
    bounds: tuple[Bound, Bound],
    partitions: Iterable[int] | None = None,
    *,
    committed_only: bool = False,
) -> dict[TopicPartition, Window]:
    """The range of each partition, those that are empty left out; the end is never beyond now."""
    info = await client.retrying(lambda: client.topic(topic, refresh=True), topics=[topic])
    known = [each.partition for each in info.partitions]
    wanted = known if partitions is None else list(dict.fromkeys(partitions))
    starts, ends = (
        _points(topic, bound, wanted, usual)
        for bound, usual in zip(bounds, ("earliest", "latest"), strict=True)
    )
    for partition in {*wanted, *starts, *ends}:
        if partition not in known:
            raise TopicNotFound(topic, partition)
    latest = await list_offsets(
        client, topic, dict.fromkeys(wanted, LATEST), committed_only=committed_only
    )
    limits = {partition: int(latest[partition].offset) for partition in wanted}
    first = await _offsets(client, topic, starts, limits)
    last = await _offsets(client, topic, ends, limits)
    windows = {partition: Window(first[partition], last[partition]) for partition in wanted}
    return {
        TopicPartition(topic, partition): window
        for partition, window in sorted(windows.items())
        if window.start_offset < window.end_offset
    }


def _points(topic: str, bound: Bound, partitions: list[int], usual: str) -> dict[int, Point]:
    if not isinstance(bound, Mapping):
        return {partition: _checked(bound) for partition in partitions}
    for partition in bound:
        if partition not in partitions:
            raise TopicNotFound(topic, partition)
    return {partition: _checked(bound.get(partition, usual)) for partition in partitions}


def _checked(point: Point) -> Point:
    if isinstance(point, str) and point not in _NAMES:
        raise WrongUse(f"{point!r} is neither 'earliest' nor 'latest'")
    if isinstance(point, bool) or not isinstance(point, str | int | datetime):
        raise WrongUse(
            "a bound is 'earliest', 'latest', an offset, a datetime or a mapping of partitions "
            f"to such, not a {type(point).__name__}"
        )
    if isinstance(point, int) and point < 0:
        raise WrongUse(f"{point} is not an offset")
    return point


async def _offsets(
    client: Client, topic: str, points: Mapping[int, Point], limits: Mapping[int, int]
) -> dict[int, int]:
    """For each partition its offset, at most the limit; times without records are the limit."""
    asked = {
        partition: _NAMES[point] if isinstance(point, str) else _timestamp_ms(point)
        for partition, point in points.items()
        if isinstance(point, str | datetime) and point != "latest"
    }
    found = await list_offsets(client, topic, asked) if asked else {}
    offsets = {}
    for partition, point in points.items():
        offset: int = limits[partition]
        if partition in found and found[partition].offset >= 0:
            offset = found[partition].offset
        elif isinstance(point, int):
            offset = point
        offsets[partition] = min(offset, limits[partition])
    return offsets


def _timestamp_ms(point: datetime) -> int:
    """The first millisecond that is not before it; a time without a zone is the machine's."""
    return max(0, -((_EPOCH - point.astimezone(UTC)) // timedelta(milliseconds=1)))
