"""Record batches to Arrow tables, without a Python object for each record.

The loops of ottla.records.speed find the parts of the records and copy them into Arrow's buffers;
this file brings the buffers and names the columns. Control batches are left out. Does not know
about transactions: batches of aborted ones are the caller's to leave out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from ottla.errors import CorruptBatch, InvalidRecord
from ottla.records import speed
from ottla.records.arrow_schema import (
    TIMESTAMP_TYPE,
    header_type,
    record_schema,
    require_pyarrow,
    schema_of,
)
from ottla.records.batch import RecordBatch
from ottla.records.compression import DECOMPRESSED_BYTES_MAX
from ottla.records.lz4_header import Data
from ottla.records.record import RecordShape

if TYPE_CHECKING:
    import pyarrow

    from ottla.records.accelerated.decoding import Places

CHUNK_BYTES: Final = 16 * 1024 * 1024
"""A table's chunk ends with the batch that brings its payloads to this size."""
_KEYS, _VALUES, _HEADERS = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a partition that is wanted: [start_offset, end_offset)."""

    start_offset: int = -(2**63)
    end_offset: int = 2**63


EVERYTHING: Final = Window()


@dataclass(frozen=True, slots=True)
class _Span:
    """A payload, and the rows whose bytes stand in it."""

    payload: Data
    first: int
    end: int
    is_append_time: bool = False


def decode_batches(
    batches: Iterable[RecordBatch],
    partition: int,
    window: Window = EVERYTHING,
    *,
    limit_bytes: int = DECOMPRESSED_BYTES_MAX,
) -> pyarrow.Table:
    """The records of these batches as a table of record_schema(); InvalidRecord on bad bytes."""
    arrow = require_pyarrow()
    schema = record_schema()
    chunks = decode_chunks(batches, partition, window, schema.names, limit_bytes=limit_bytes)
    return arrow.Table.from_batches(chunks, schema=schema)


def decode_chunks(
    batches: Iterable[RecordBatch],
    partition: int,
    window: Window,
    columns: Sequence[str],
    *,
    checks_crc: bool = False,
    limit_bytes: int = DECOMPRESSED_BYTES_MAX,
) -> Iterator[pyarrow.RecordBatch]:
    """The same a chunk at a time, with these columns only: what is not asked for costs little.

    CorruptBatch where a checksum is to agree with its batch and does not. Memory is taken for one
    chunk at a time: about CHUNK_BYTES and a batch twice.
    """
    schema = schema_of(tuple(columns))
    for chunk in _chunks(batches, window, limit_bytes, checks_crc=checks_crc):
        decoded = _decode_chunk(chunk, partition, window, schema)
        if decoded.num_rows:
            yield decoded


@dataclass(frozen=True, slots=True)
class _Part:
    """A batch, and its records' bytes."""

    batch: RecordBatch
    payload: Data
    shape: RecordShape
    is_unchecked: bool
    """Whether its checksum is still to be compared."""

    def check(self) -> None:
        """Raises where the bytes are not those that were written, or too few for the records."""
        if self.is_unchecked:
            _check_crc(self.batch)
        if not 0 <= self.shape.record_count <= len(self.payload):
            raise InvalidRecord(f"{self.shape.record_count} records in {len(self.payload)} bytes")


def _check_crc(batch: RecordBatch) -> None:
    if not batch.is_intact():
        raise CorruptBatch(f"the batch at offset {batch.base_offset} arrived damaged")


def _chunks(
    batches: Iterable[RecordBatch], window: Window, limit_bytes: int, *, checks_crc: bool
) -> Iterator[list[_Part]]:
    """Batches, so many at a time that no column outgrows its 2 GiB."""
    chunk: list[_Part] = []
    size_bytes = 0
    for batch in batches:
        if batch.is_control or not _overlaps(batch, window):
            continue
        if checks_crc and batch.is_compressed:
            _check_crc(batch)
        payload = speed.payload_of(batch, limit_bytes)
        is_unchecked = checks_crc and not batch.is_compressed
        chunk.append(_Part(batch, payload, batch.shape(), is_unchecked))
        size_bytes += len(payload)
        if size_bytes >= CHUNK_BYTES:
            yield chunk
            chunk = []
            size_bytes = 0
    if chunk:
        yield chunk


def _overlaps(batch: RecordBatch, window: Window) -> bool:
    return batch.last_offset >= window.start_offset and batch.base_offset < window.end_offset


def _room(chunk: list[_Part]) -> int:
    """For how many rows memory is asked."""
    room = 0
    for part in chunk:
        if not 0 <= part.shape.record_count <= len(part.payload):
            part.check()
        room += part.shape.record_count
    return room


def _decode_chunk(
    chunk: list[_Part], partition: int, window: Window, schema: pyarrow.Schema
) -> pyarrow.RecordBatch:
    """Each batch is checked, searched and copied before the next: then it is in the cache."""
    arrow = require_pyarrow()
    room = _room(chunk)
    numbers = arrow.allocate_buffer(16 * room)
    places, ends = _places(3, room)
    index = speed.decoding.RecordIndex(memoryview(numbers).cast("q"), places)
    index.first_offset = window.start_offset
    index.last_offset = window.end_offset - 1
    bytes_max = sum(len(part.payload) for part in chunk)
    copies = [
        _Copy(places, column, bytes_max)
        for column, name in ((_KEYS, "key"), (_VALUES, "value"))
        if name in schema.names
    ]
    spans = []
    for part in chunk:
        first = places.count
        part.check()
        index.add(part.payload, part.shape)
        is_append_time = part.shape.append_time is not None
        span = _Span(part.payload, first, places.count, is_append_time)
        for copy in copies:
            copy.add(span)
        spans.append(span)
    count = places.count
    binaries = {copy.column: copy for copy in copies}
    make: dict[str, Callable[[], pyarrow.Array]] = {
        "offset": lambda: arrow.Array.from_buffers(arrow.int64(), count, [None, numbers]),
        "timestamp": lambda: arrow.Array.from_buffers(
            arrow.timestamp("ms", tz="UTC"), count, [None, numbers.slice(8 * room)]
        ),
        "key": lambda: binaries[_KEYS].array(ends),
        "value": lambda: binaries[_VALUES].array(ends),
        "headers": lambda: _headers(places, ends, spans),
        "partition": lambda: arrow.repeat(arrow.scalar(partition, arrow.int32()), count),
        TIMESTAMP_TYPE: lambda: _timestamp_types(spans, count),
    }
    return arrow.RecordBatch.from_arrays([make[name]() for name in schema.names], schema=schema)


def _timestamp_types(spans: list[_Span], count: int) -> pyarrow.Int32Array:
    arrow = require_pyarrow()
    kinds = {span.is_append_time for span in spans}
    if len(kinds) == 1:
        return arrow.repeat(arrow.scalar(int(kinds.pop()), arrow.int32()), count)
    parts = [
        arrow.repeat(arrow.scalar(int(span.is_append_time), arrow.int32()), span.end - span.first)
        for span in spans
    ]
    return arrow.concat_arrays(parts)


def _places(columns: int, room: int) -> tuple[Places, pyarrow.Buffer]:
    """Places for so many columns and rows, and the buffer in which their ends stand."""
    arrow = require_pyarrow()
    starts = arrow.allocate_buffer(4 * columns * room)
    ends = arrow.allocate_buffer(4 * columns * (room + 1))
    places = speed.decoding.Places(
        columns, memoryview(starts).cast("i"), memoryview(ends).cast("i")
    )
    return places, ends


class _Copy:
    """A column of bytes, copied together from where its values stand."""

    __slots__ = ("_data", "_places", "_target", "column")

    def __init__(self, places: Places, column: int, bytes_max: int) -> None:
        """Takes memory for as many bytes as there can be; what is too much is given back."""
        self.column = column
        self._places = places
        self._data = require_pyarrow().allocate_buffer(bytes_max, resizable=True)
        self._target = memoryview(self._data).cast("B")

    def add(self, span: _Span) -> None:
        """Copies the values of these rows, behind those of the rows before."""
        starts_of, ends_of = self._places.starts_of(self.column), self._places.ends_of(self.column)
        first, end = span.first, span.end
        if ends_of[first] < ends_of[end]:
            speed.decoding.copy_values(
                span.payload, starts_of[first:end], ends_of[first : end + 1], self._target
            )

    def array(self, ends: pyarrow.Buffer) -> pyarrow.BinaryArray:
        """All of them."""
        arrow = require_pyarrow()
        places = self._places
        self._target.release()  # a buffer that is looked at cannot change its size
        self._data.resize(places.ends_of(self.column)[places.count], shrink_to_fit=True)
        null_count, bitmap = speed.decoding.validity(places.starts_of(self.column))
        buffers = [
            arrow.py_buffer(bitmap) if null_count else None,
            _ends_of(places, ends, self.column),
            self._data,
        ]
        return arrow.Array.from_buffers(arrow.binary(), places.count, buffers, null_count)


def _binary(
    places: Places, ends: pyarrow.Buffer, column: int, spans: list[_Span]
) -> pyarrow.BinaryArray:
    """A column whose places are all known."""
    copy = _Copy(places, column, places.ends_of(column)[places.count])
    for span in spans:
        copy.add(span)
    return copy.array(ends)


def _ends_of(places: Places, ends: pyarrow.Buffer, column: int) -> pyarrow.Buffer:
    return ends.slice(4 * column * (places.room + 1))


def _headers(places: Places, ends: pyarrow.Buffer, spans: list[_Span]) -> pyarrow.ListArray:
    """The headers of all rows: mostly there are none."""
    arrow = require_pyarrow()
    has_some = places.ends_of(_HEADERS)[places.count] > 0
    return arrow.Array.from_buffers(
        record_schema().field("headers").type,
        places.count,
        [None, _ends_of(places, ends, _HEADERS)],
        children=[_header_items(places, spans) if has_some else _no_headers()],
    )


@cache
def _no_headers() -> pyarrow.StructArray:
    return require_pyarrow().array([], header_type())


def _header_items(places: Places, spans: list[_Span]) -> pyarrow.StructArray:
    """The headers of all rows in one row of structs."""
    arrow = require_pyarrow()
    starts_of, ends_of = places.starts_of(_HEADERS), places.ends_of(_HEADERS)
    items, item_ends = _places(2, ends_of[places.count])
    item_spans = []
    for span in spans:
        first = items.count
        rows, row_ends = starts_of[span.first : span.end], ends_of[span.first : span.end + 1]
        speed.decoding.index_headers(span.payload, rows, row_ends, items)
        item_spans.append(_Span(span.payload, first, items.count))
    keys = _text(_binary(items, item_ends, _KEYS, item_spans))
    values = _binary(items, item_ends, _VALUES, item_spans)
    return arrow.StructArray.from_arrays([keys, values], fields=list(header_type()))


def _text(keys: pyarrow.BinaryArray) -> pyarrow.StringArray:
    """Header keys as text. Where they are not, what is wrong in them is replaced, as in rows."""
    arrow = require_pyarrow()
    try:
        return keys.cast(arrow.string())
    except arrow.ArrowInvalid:
        return arrow.array(
            [key.decode("utf-8", "replace") for key in keys.to_pylist()], arrow.string()
        )
