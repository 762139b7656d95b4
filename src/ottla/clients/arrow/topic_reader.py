"""A topic, or a part of it, as one Arrow table or as a stream of record batches, for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from ottla.clients.arrow.bounds import Bound, ranges_between
from ottla.clients.arrow.columns import COLUMNS, read_schema
from ottla.clients.arrow.read_plan import ReadPlan, plan_read
from ottla.clients.arrow.reading import Reading
from ottla.clients.producer.core import with_bootstrap
from ottla.clients.settings_source import Config
from ottla.records.arrow_schema import require_pyarrow

if TYPE_CHECKING:
    import pyarrow


async def read_topic(
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
    """What a topic holds from `start` to before `end`, partition by partition, as one table."""
    plan = plan_read(
        config,
        with_bootstrap(settings, bootstrap_servers),
        columns=columns,
        read_committed=read_committed,
    )
    batches = [batch async for batch in _batches(plan, topic, (start, end), partitions)]
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
) -> AsyncIterator[pyarrow.RecordBatch]:
    """The same as record batches, in bounded memory."""
    plan = plan_read(
        config,
        with_bootstrap(settings, bootstrap_servers),
        columns=columns,
        read_committed=read_committed,
    )
    return _batches(plan, topic, (start, end), partitions)


async def _batches(
    plan: ReadPlan, topic: str, bounds: tuple[Bound, Bound], partitions: Sequence[int] | None
) -> AsyncIterator[pyarrow.RecordBatch]:
    reading = Reading(plan)
    try:
        await begin(reading, plan, topic, bounds, partitions)
        while (answer := await reading.next_answer()) is not None:
            for batch in answer.decoded():
                yield batch
    finally:
        await reading.close()


async def begin(
    reading: Reading,
    plan: ReadPlan,
    topic: str,
    bounds: tuple[Bound, Bound],
    partitions: Sequence[int] | None,
) -> None:
    """Finds out what there is between the bounds, and begins to read it."""
    reading.begin(
        await ranges_between(
            reading.client, topic, bounds, partitions, committed_only=plan.committed_only
        )
    )
