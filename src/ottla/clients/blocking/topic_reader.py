"""A topic, or a part of it, as one Arrow table or as a stream of record batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ottla.clients.arrow.bounds import Bound
from ottla.clients.arrow.columns import COLUMNS
from ottla.clients.arrow.topic_part import TopicPart, WhichPart, plan_part
from ottla.clients.blocking.reading import BlockingReading
from ottla.clients.settings_source import Config

if TYPE_CHECKING:
    import pyarrow


def read_topic(
    topic: str,
    start: Bound = "earliest",
    end: Bound = "latest",
    *,
    bootstrap_servers: str | Sequence[str] | None = None,
    partitions: Sequence[int] | None = None,
    columns: Sequence[str] = COLUMNS,
    read_committed: bool | None = None,
    config: Config = None,
    **settings: object,
) -> pyarrow.Table:
    """What a topic holds from `start` to before `end`, partition by partition, as one table.

    A bound is "earliest", "latest", an offset, a datetime, or a mapping of partitions to such.
    """
    which = WhichPart(topic, (start, end), partitions, bootstrap_servers)
    part = plan_part(which, config, settings, columns=columns, read_committed=read_committed)
    return part.table(_batches(part))


def iter_topic(
    topic: str,
    start: Bound = "earliest",
    end: Bound = "latest",
    *,
    bootstrap_servers: str | Sequence[str] | None = None,
    partitions: Sequence[int] | None = None,
    columns: Sequence[str] = COLUMNS,
    read_committed: bool | None = None,
    config: Config = None,
    **settings: object,
) -> Iterator[pyarrow.RecordBatch]:
    """The same as record batches, in bounded memory."""
    which = WhichPart(topic, (start, end), partitions, bootstrap_servers)
    part = plan_part(which, config, settings, columns=columns, read_committed=read_committed)
    return _batches(part)


def _batches(part: TopicPart) -> Iterator[pyarrow.RecordBatch]:
    reading = BlockingReading(part.plan, part.begin)
    try:
        yield from reading.batches()
    finally:
        reading.close()
