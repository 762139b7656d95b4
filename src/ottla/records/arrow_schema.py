"""The columns in which records stand in an Arrow table, and the way to pyarrow, which is an extra.

Nothing here or beside it needs pyarrow before a function is called that does.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from ottla.errors import InvalidRecord

if TYPE_CHECKING:
    import pyarrow

SCHEMAS_REMEMBERED_MAX: Final = 64
TIMESTAMP_TYPE: Final = "timestamp_type"
"""A column that is there only when asked for: 0 by the producer's clock, 1 by the broker's."""


def require_pyarrow() -> Any:
    """pyarrow, or an ImportError that says how to get it."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            "Arrow tables need pyarrow, which is an extra: pip install 'ottla[arrow]'"
        ) from error
    return pyarrow


@cache
def header_type() -> pyarrow.DataType:
    """One header: a key and a value that may be null."""
    arrow = require_pyarrow()
    key = arrow.field("key", arrow.string(), nullable=False)
    return arrow.struct([key, arrow.field("value", arrow.binary())])


@cache
def record_schema() -> pyarrow.Schema:
    """What a table of records read from a topic looks like."""
    arrow = require_pyarrow()
    headers = arrow.list_(arrow.field("item", header_type(), nullable=False))
    return arrow.schema(
        [
            arrow.field("offset", arrow.int64(), nullable=False),
            arrow.field("timestamp", arrow.timestamp("ms", tz="UTC"), nullable=False),
            arrow.field("key", arrow.binary()),
            arrow.field("value", arrow.binary()),
            arrow.field("headers", headers, nullable=False),
            arrow.field("partition", arrow.int32(), nullable=False),
        ]
    )


@lru_cache(SCHEMAS_REMEMBERED_MAX)
def schema_of(columns: tuple[str, ...]) -> pyarrow.Schema:
    """These columns of a table of records, in this order."""
    arrow = require_pyarrow()
    known = {field.name: field for field in record_schema()}
    known[TIMESTAMP_TYPE] = arrow.field(TIMESTAMP_TYPE, arrow.int32(), nullable=False)
    unknown = [name for name in columns if name not in known]
    if unknown:
        raise InvalidRecord(f"records have no column {unknown[0]!r}; they have {', '.join(known)}")
    return arrow.schema([known[name] for name in columns])
