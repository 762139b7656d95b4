"""A part of a topic as somebody asks for it, planned in one place for both faces of its readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class WhichPart:
    """Where it lies: the bounds are the start and the end, no partitions stand for all."""

    topic: str
    bounds: tuple[Bound, Bound]
    partitions: Sequence[int] | None = None
    bootstrap_servers: str | Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class TopicPart:
    """What is read, and how."""

    which: WhichPart
    plan: ReadPlan

    async def begin(self, reading: Reading) -> None:
        """Finds out what there is between the bounds, and begins to read it."""
        which = self.which
        ranges = await ranges_between(
            reading.client,
            which.topic,
            which.bounds,
            which.partitions,
            committed_only=self.plan.committed_only,
        )
        reading.begin(ranges)

    def table(self, batches: Iterable[pyarrow.RecordBatch]) -> pyarrow.Table:
        """All that was read as one, also where that is nothing."""
        schema = read_schema(self.plan.columns)
        return require_pyarrow().Table.from_batches(batches, schema=schema)


def plan_part(
    which: WhichPart,
    config: Config,
    settings: Mapping[str, object],
    *,
    columns: Sequence[str] = COLUMNS,
    read_committed: bool | None = None,
) -> TopicPart:
    """Reads what a person wrote."""
    keywords = with_bootstrap(dict(settings), which.bootstrap_servers)
    plan = plan_read(config, keywords, columns=columns, read_committed=read_committed)
    return TopicPart(which, plan)
