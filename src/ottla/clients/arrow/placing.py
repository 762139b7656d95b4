"""Which rows of a piece go to which partition: whole columns at a time.

A partition that is given comes first, by argument or in the column `partition`; then the key,
exactly as single records are placed; rows with neither belong nowhere in particular.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.clients.producer.routing import Partitioner
from ottla.records.arrow_encode import place_table
from ottla.records.arrow_schema import require_pyarrow

if TYPE_CHECKING:
    import pyarrow

ANYWHERE: Final = -1
"""Instead of a partition: wherever it is the turn."""


@dataclass(frozen=True, slots=True)
class Placement:
    """How rows find their partition, for one topic."""

    topic: str
    partition: int | None = None
    """Where all of them go."""
    partitioner: Partitioner | None = None
    ignores_keys: bool = False


def last_given(piece: pyarrow.RecordBatch, how: Placement) -> tuple[int, int]:
    """The smallest and the largest partition that is given; 0 where none is."""
    if how.partition is not None:
        return how.partition, how.partition
    if "partition" not in piece.schema.names:
        return 0, 0
    from pyarrow import compute

    bounds = compute.min_max(piece.column("partition")).as_py()
    return bounds["min"] or 0, bounds["max"] or 0


def by_partition(
    piece: pyarrow.RecordBatch, how: Placement, partition_count: int
) -> list[tuple[int, pyarrow.RecordBatch]]:
    """The piece's rows by partition, those of each in their order."""
    rows = piece.select([name for name in piece.schema.names if name != "partition"])
    if how.partition is not None:
        return [(how.partition, rows)]
    places = _places(piece, how, partition_count)
    if places is None:
        return [(ANYWHERE, rows)]
    from pyarrow import compute

    counts = {row["values"]: row["counts"] for row in compute.value_counts(places).to_pylist()}
    if len(counts) == 1:
        return [(place, rows) for place in counts]
    ordered = rows.take(compute.array_sort_indices(places))
    parts = []
    start = 0
    for place in sorted(counts):
        parts.append((place, ordered.slice(start, counts[place])))
        start += counts[place]
    return parts


def _places(
    piece: pyarrow.RecordBatch, how: Placement, partition_count: int
) -> pyarrow.Int32Array | None:
    """For each row its partition, or ANYWHERE; None where that holds for all."""
    arrow = require_pyarrow()
    names = piece.schema.names
    by_key = None
    if how.partitioner is not None:
        by_key = _asked(piece, how, partition_count)
    elif "key" in names and not how.ignores_keys and piece.column("key").null_count < len(piece):
        by_key = place_table(arrow.Table.from_batches([piece.select(["key"])]), partition_count)
    if "partition" not in names:
        return by_key
    given = piece.column("partition").cast(arrow.int32())
    if not given.null_count:
        return given
    if by_key is None:
        return given.fill_null(ANYWHERE)
    from pyarrow import compute

    return compute.coalesce(given, by_key)


def _asked(piece: pyarrow.RecordBatch, how: Placement, partition_count: int) -> pyarrow.Int32Array:
    """A partitioner of the user's sees one record after the other."""
    arrow = require_pyarrow()
    assert how.partitioner is not None
    columns = [
        piece.column(name).to_pylist() if name in piece.schema.names else [None] * len(piece)
        for name in ("key", "value")
    ]
    chosen = [
        how.partitioner(how.topic, key, value, partition_count)
        for key, value in zip(*columns, strict=True)
    ]
    return arrow.array(chosen, arrow.int32())
