"""A topic, or a part of it, as one Arrow table or as a stream of record batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ottla.clients.arrow.bounds import Bound
from ottla.clients.arrow.columns import COLUMNS, read_schema
from ottla.clients.arrow.read_plan import ReadPlan, plan_read
from ottla.clients.arrow.topic_reader import begin
from ottla.clients.blocking.reading import BlockingReading
from ottla.clients.producer.core import with_bootstrap
from ottla.clients.settings_source import Config
from ottla.records.arrow_schema import require_pyarrow

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
    plan = plan_read(
        config,
        with_bootstrap(settings, bootstrap_servers),
        columns=columns,
        read_committed=read_committed,
    )
    batches = list(_batches(plan, topic, (start, end), partitions))
    return require_pyarrow().Table.from_batches(batches, schema=read_schema(plan.columns))


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
    plan = plan_read(
        config,
        with_bootstrap(settings, bootstrap_servers),
        columns=columns,
        read_committed=read_committed,
    )
    return _batches(plan, topic, (start, end), partitions)


def _batches(
    plan: ReadPlan, topic: str, bounds: tuple[Bound, Bound], partitions: Sequence[int] | None
) -> Iterator[pyarrow.RecordBatch]:
    reading = BlockingReading(plan, lambda made: begin(made, plan, topic, bounds, partitions))
    try:
        yield from reading.batches()
    finally:
        reading.close()
