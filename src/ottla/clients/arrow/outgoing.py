"""Tables as their senders write them, to pieces whose columns are what an encoder takes.

A piece is a part of bounded size, so that a table of any size, or a stream of them, passes through
bounded memory. Does not know partitions or brokers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from ottla.clients.failures import WrongUse
from ottla.records.arrow_schema import require_pyarrow

if TYPE_CHECKING:
    import pyarrow

PIECE_BYTES: Final = 16 * 1024 * 1024
"""About what is put in order and encoded at once."""
_CONTENT: Final = ("key", "value")
_TAKEN: Final = (*_CONTENT, "timestamp", "headers", "partition")
_PASSED_OVER: Final = frozenset({"topic", "offset", "timestamp_type"})
"""What a table that was read has besides, and a broker decides anew."""


def pieces_of(given: Any) -> Iterator[pyarrow.RecordBatch]:
    """The rows of a table, a record batch or a stream of them, in order, in bounded pieces.

    What cannot become records is refused before the first piece.
    """
    arrow = require_pyarrow()
    if isinstance(given, arrow.RecordBatch):
        given = arrow.Table.from_batches([given])
    if isinstance(given, arrow.Table):
        casts = _casts(given.schema)
        tables: Iterable[pyarrow.Table] = [given]
    elif isinstance(given, arrow.RecordBatchReader):
        casts = _casts(given.schema)
        tables = _gathered(given)
    else:
        raise WrongUse(
            "send_arrow takes a pyarrow Table, RecordBatch or RecordBatchReader, "
            f"not a {type(given).__name__}"
        )
    return _pieces(tables, casts)


def _pieces(
    tables: Iterable[pyarrow.Table], casts: dict[str, pyarrow.DataType]
) -> Iterator[pyarrow.RecordBatch]:
    arrow = require_pyarrow()
    for table in tables:
        if not table.num_rows:
            continue
        table = table.select(list(casts))
        rows = max(1, table.num_rows * PIECE_BYTES // max(table.nbytes, 1))
        for start in range(0, table.num_rows, rows):
            part = table.slice(start, rows)
            if max(column.num_chunks for column in part.columns) > 1:
                part = part.combine_chunks()
            for batch in part.to_batches():
                arrays = [_cast(batch.column(name), name, kind) for name, kind in casts.items()]
                yield arrow.RecordBatch.from_arrays(arrays, names=list(casts))


def _gathered(reader: pyarrow.RecordBatchReader) -> Iterator[pyarrow.Table]:
    """A stream's batches, small ones together."""
    arrow = require_pyarrow()
    gathered: list[pyarrow.RecordBatch] = []
    size_bytes = 0
    for batch in reader:
        gathered.append(batch)
        size_bytes += batch.nbytes
        if size_bytes >= PIECE_BYTES:
            yield arrow.Table.from_batches(gathered)
            gathered, size_bytes = [], 0
    if gathered:
        yield arrow.Table.from_batches(gathered)


def _casts(schema: pyarrow.Schema) -> dict[str, pyarrow.DataType]:
    """By column, in what form it is encoded; WrongUse for a table that cannot be."""
    names = schema.names
    unknown = [name for name in names if name not in _TAKEN and name not in _PASSED_OVER]
    if unknown or len(set(names)) < len(names):
        raise WrongUse(
            f"columns {', '.join(names)}: a table of records has {', '.join(_TAKEN)}, "
            "each once or not at all; rename or drop the others"
        )
    if not set(names) & set(_CONTENT):
        raise WrongUse("a table of records has a column named value, or key")
    return {name: _target(name, schema.field(name).type) for name in _TAKEN if name in names}


def _target(name: str, given: pyarrow.DataType) -> pyarrow.DataType:
    arrow = require_pyarrow()
    types = arrow.types
    content = given.value_type if types.is_dictionary(given) else given
    if name in _CONTENT and (_is_bytes_or_text(content) or types.is_null(content)):
        return arrow.binary()
    if name == "timestamp" and types.is_timestamp(given):
        return arrow.timestamp("ms", tz=given.tz)
    if name == "timestamp" and (types.is_integer(given) or types.is_null(given)):
        return arrow.int64()
    if name == "partition" and types.is_integer(given):
        return arrow.int64()
    if name == "headers" and _is_headers(given):
        item = arrow.struct([("key", arrow.binary()), ("value", arrow.binary())])
        return arrow.list_(item)
    raise WrongUse(f"the column {name} is of type {given}; it must be {_WANTED[name]}")


_WANTED: Final = {
    "key": "bytes or text: serialize or cast it first",
    "value": "bytes or text: serialize or cast it first",
    "timestamp": "a timestamp, or a number of milliseconds since 1970",
    "headers": "a list of structs with a key and a value, or a map, of bytes or text",
    "partition": "a whole number",
}


def _is_bytes_or_text(kind: pyarrow.DataType) -> bool:
    types = require_pyarrow().types
    return bool(
        types.is_binary(kind)
        or types.is_string(kind)
        or types.is_large_binary(kind)
        or types.is_large_string(kind)
        or types.is_binary_view(kind)
        or types.is_string_view(kind)
        or types.is_fixed_size_binary(kind)
    )


def _is_headers(kind: pyarrow.DataType) -> bool:
    types = require_pyarrow().types
    if types.is_null(kind):
        return True
    if types.is_map(kind):
        return _is_bytes_or_text(kind.key_type) and _is_bytes_or_text(kind.item_type)
    if not (types.is_list(kind) or types.is_large_list(kind)):
        return False
    item = kind.value_type
    if types.is_null(item):
        return True
    if not types.is_struct(item) or {field.name for field in item} != {"key", "value"}:
        return False
    kinds = [field.type for field in item]
    return all(_is_bytes_or_text(each) or types.is_null(each) for each in kinds)


def _cast(column: pyarrow.Array, name: str, target: pyarrow.DataType) -> pyarrow.Array:
    arrow = require_pyarrow()
    try:
        cast = column.cast(target, safe=name != "timestamp")
    except arrow.ArrowException as error:
        raise WrongUse(f"the column {name} cannot be read as {target}: {error}") from error
    if name == "headers" and cast.flatten().field("key").null_count:
        raise WrongUse("the column headers has a header without a key")
    return cast
