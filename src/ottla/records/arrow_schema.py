"""The columns in which records stand in an Arrow table, and the way to pyarrow, which is an extra.

Nothing here or beside it needs pyarrow before a function is called that does.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow


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
