"""The columns of a table that was read from topics, and how wire batches become one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from ottla.clients.failures import WrongUse
from ottla.errors import CorruptBatch
from ottla.model.ids import TopicPartition
from ottla.records.arrow_decode import Window, decode_chunks
from ottla.records.arrow_schema import require_pyarrow, schema_of
from ottla.records.batch import RecordBatch

if TYPE_CHECKING:
    import pyarrow

TOPIC: Final = "topic"
COLUMNS: Final = (
    TOPIC,
    "partition",
    "offset",
    "timestamp",
    "timestamp_type",
    "key",
    "value",
    "headers",
)
"""All there are, in the order a table has them."""
TOPICS_REMEMBERED_MAX: Final = 1024
SCHEMAS_REMEMBERED_MAX: Final = 64


def checked_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """The columns, if there are such."""
    require_pyarrow()
    wanted = (columns,) if isinstance(columns, str) else tuple(columns)
    for name in wanted:
        if name not in COLUMNS:
            raise WrongUse(f"there is no column {name!r}; there are {', '.join(COLUMNS)}")
    if not wanted or len(set(wanted)) < len(wanted):
        raise WrongUse("columns are one or more different names")
    return wanted


def read_schema(columns: Sequence[str] = COLUMNS) -> pyarrow.Schema:
    """What a table with these columns looks like."""
    return _read_schema(tuple(columns))


@lru_cache(SCHEMAS_REMEMBERED_MAX)
def _read_schema(columns: tuple[str, ...]) -> pyarrow.Schema:
    arrow = require_pyarrow()
    fields = {field.name: field for field in schema_of(tuple(c for c in columns if c != TOPIC))}
    topic_type = arrow.dictionary(arrow.int32(), arrow.string())
    fields[TOPIC] = arrow.field(TOPIC, topic_type, nullable=False)
    return arrow.schema([fields[name] for name in columns])


def decode_columns(
    batches: Iterable[RecordBatch],
    where: TopicPartition,
    window: Window,
    columns: Sequence[str],
    *,
    checks_crc: bool,
) -> Iterator[pyarrow.RecordBatch]:
    """The records of a partition's wire batches within the window, in bounded pieces.

    CorruptBatch at the first whose checksum does not agree.
    """
    inner = [name for name in columns if name != TOPIC]
    if not inner:  # a column is needed to know how many rows there are
        inner = ["partition"]
    try:
        for chunk in decode_chunks(batches, where.partition, window, inner, checks_crc=checks_crc):
            yield _with_topic(chunk, where.topic, columns) if TOPIC in columns else chunk
    except CorruptBatch as error:
        raise CorruptBatch(f"{where}: {error}") from None


def _with_topic(
    chunk: pyarrow.RecordBatch, topic_name: str, columns: Sequence[str]
) -> pyarrow.RecordBatch:
    arrow = require_pyarrow()
    indexes = arrow.repeat(arrow.scalar(0, arrow.int32()), chunk.num_rows)
    topic = arrow.DictionaryArray.from_arrays(indexes, _dictionary(topic_name))
    arrays = [topic if name == TOPIC else chunk.column(name) for name in columns]
    return arrow.RecordBatch.from_arrays(arrays, schema=read_schema(columns))


@lru_cache(TOPICS_REMEMBERED_MAX)
def _dictionary(topic: str) -> pyarrow.StringArray:
    """Remembered: where pandas is not installed, pyarrow looks for it each time it is asked."""
    return require_pyarrow().array([topic])
