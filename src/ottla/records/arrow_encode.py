"""Arrow tables to record batches, without a Python object for each record.

A table has a column `value` or `key`, or both, and may have `timestamp` and `headers`; what else a
table read from a topic has is ignored. Does not know about partitions: a table holds the records of
one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, MutableSequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ottla.errors import InvalidRecord
from ottla.records import speed
from ottla.records.arrow_schema import require_pyarrow
from ottla.records.batch import HEADER_BYTES, SEQUENCES, TRANSACTIONAL_BIT
from ottla.records.builder import (
    NO_PRODUCER,
    BatchHeader,
    ProducerStamp,
    encode_batch,
    seal,
    write_header,
)
from ottla.records.compression import Compression

if TYPE_CHECKING:
    import pyarrow

    from ottla.records.accelerated.encoding import BinarySource, RecordSource

BATCH_BYTES_DEFAULT: Final = 1_000_000
_ENCODED: Final = frozenset({"key", "value", "timestamp", "headers"})
_IGNORED: Final = frozenset({"topic", "partition", "offset"})
_SMALL_CHUNK_BATCHES: Final = 8
"""Chunks of fewer batches than this are joined first, for a batch does not span two of them."""


@dataclass(frozen=True, slots=True)
class TableEncoding:
    """How the batches of a table are made."""

    batch_bytes: int = BATCH_BYTES_DEFAULT
    """What a batch takes at most before compression, unless one record alone takes more."""
    compression: Compression = Compression.NONE
    level: int | None = None
    producer: ProducerStamp = NO_PRODUCER
    """Of the first batch; the sequence of the others follows."""
    has_checksums: bool = True
    """False for whoever stamps the batches later, which takes another checksum. Those that are
    compressed have one all the same.
    """


DEFAULT_ENCODING: Final = TableEncoding()


def encode_table(
    table: pyarrow.Table | pyarrow.RecordBatch,
    timestamp_ms: int,
    encoding: TableEncoding = DEFAULT_ENCODING,
    spares: MutableSequence[bytearray] | None = None,
) -> Iterator[bytearray]:
    """The batches of a table's records, in order; `timestamp_ms` is for those that have none.

    `spares` are earlier batches that nobody needs any more: their memory is used again.
    """
    arrow = require_pyarrow()
    if isinstance(table, arrow.RecordBatch):
        table = arrow.Table.from_batches([table])
    _check_columns(table)
    chunks = max((column.num_chunks for column in table.columns), default=0)
    if chunks > 1 and table.nbytes < _SMALL_CHUNK_BATCHES * chunks * encoding.batch_bytes:
        table = table.combine_chunks()
    producer = encoding.producer
    for chunk in table.to_batches():
        rows = _rows(chunk, timestamp_ms)
        first = 0
        while first < chunk.num_rows:
            batch, end = _encode_batch(rows, first, encoding, producer, _last(spares))
            yield batch
            if producer.base_sequence >= 0:
                sequence = (producer.base_sequence + end - first) % SEQUENCES
                producer = replace(producer, base_sequence=sequence)
            first = end


def place_table(table: pyarrow.Table, partition_count: int) -> pyarrow.Int32Array:
    """For each row the partition its key belongs to in every Kafka client; -1 without a key."""
    arrow = require_pyarrow()
    if "key" not in table.column_names:
        return arrow.repeat(arrow.scalar(-1, arrow.int32()), table.num_rows)
    placed = []
    for chunk in table["key"].chunks:
        source = _binary(chunk)
        assert source is not None
        places = arrow.py_buffer(speed.encoding.place_keys(source, partition_count))
        placed.append(arrow.Array.from_buffers(arrow.int32(), len(chunk), [None, places]))
    return arrow.concat_arrays(placed) if placed else arrow.array([], arrow.int32())


def _check_columns(table: pyarrow.Table) -> None:
    names = table.column_names
    unknown = set(names) - _ENCODED - _IGNORED
    if unknown or len(set(names)) != len(names):
        raise InvalidRecord(
            f"columns {', '.join(names)}: a table of records has key, value, timestamp and headers"
        )
    if not {"key", "value"} & set(names):
        raise InvalidRecord("a table of records has a column named value, or key")


@dataclass(frozen=True, slots=True)
class _Rows:
    """What a chunk's records are encoded from."""

    source: RecordSource
    timestamps: memoryview


def _last(spares: MutableSequence[bytearray] | None) -> bytearray | None:
    """The one that was used last, and so is most likely still near to the processor."""
    try:
        return spares.pop() if spares else None
    except IndexError:  # another thread was faster
        return None


def _encode_batch(
    rows: _Rows,
    first: int,
    encoding: TableEncoding,
    producer: ProducerStamp,
    spare: bytearray | None,
) -> tuple[bytearray, int]:
    """A batch of the rows from `first` on, and the row it ends before."""
    is_plain = encoding.compression is Compression.NONE
    payload, end = rows.source.encode(
        first, encoding.batch_bytes - HEADER_BYTES, HEADER_BYTES if is_plain else 0, spare
    )
    header = BatchHeader(
        record_count=end - first,
        last_offset_delta=end - first - 1,
        base_timestamp=rows.timestamps[first],
        max_timestamp=rows.source.max_timestamp(first, end),
        attributes=TRANSACTIONAL_BIT if producer.is_transactional else 0,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=producer.base_sequence,
    )
    if is_plain:
        write = seal if encoding.has_checksums else write_header
        write(payload, header, Compression.NONE)
        return payload, end
    return encode_batch(header, payload, encoding.compression, encoding.level), end


def _rows(chunk: pyarrow.RecordBatch, timestamp_ms: int) -> _Rows:
    columns = dict(zip(chunk.schema.names, chunk.columns, strict=True))
    timestamps = _timestamps(columns.get("timestamp"), chunk.num_rows, timestamp_ms)
    source = speed.encoding.RecordSource(
        timestamps,
        _binary(columns.get("key")),
        _binary(columns.get("value")),
        _headers(columns.get("headers")),
    )
    return _Rows(source, timestamps)


def _binary(column: pyarrow.Array | None) -> BinarySource | None:
    """Where the values of a column of bytes or text stand."""
    if column is None:
        return None
    arrow = require_pyarrow()
    column = column.cast(arrow.binary())
    bits, ends, data = column.buffers()
    count, first = len(column), column.offset
    if not count:
        return speed.encoding.BinarySource(memoryview(bytes(4)).cast("i"), memoryview(b""), None)
    return speed.encoding.BinarySource(
        memoryview(ends).cast("i")[first : first + count + 1],
        memoryview(b"" if data is None else data).cast("B"),
        memoryview(bits).cast("B") if column.null_count else None,
        first,
    )


def _timestamps(column: pyarrow.Array | None, count: int, timestamp_ms: int) -> memoryview:
    """Milliseconds, the given ones where there are none."""
    arrow = require_pyarrow()
    if column is None:
        column = arrow.repeat(arrow.scalar(timestamp_ms, arrow.int64()), count)
    if arrow.types.is_timestamp(column.type):
        column = column.cast(arrow.timestamp("ms", tz=column.type.tz), safe=False)
    column = column.cast(arrow.int64())
    if column.null_count:
        column = column.fill_null(timestamp_ms)
    if not count:
        return memoryview(b"").cast("q")
    return memoryview(column.buffers()[1]).cast("q")[column.offset : column.offset + count]


def _headers(column: pyarrow.Array | None) -> BinarySource | None:
    """The headers of each row as a record ends in them; None where no row has any."""
    if column is None:
        return None
    arrow = require_pyarrow()
    item = arrow.struct([("key", arrow.binary()), ("value", arrow.binary())])
    column = column.cast(arrow.list_(item))
    if column.null_count:
        column = column.fill_null([])
    items = column.values
    if not len(items):
        return None
    first, count = column.offset, len(column)
    counts = memoryview(column.buffers()[1]).cast("i")[first : first + count + 1]
    keys, values = (_binary(items.field(name)) for name in ("key", "value"))
    assert keys is not None
    assert values is not None
    sections = speed.encoding.header_sections(counts, keys, values)
    ends = array("i", [0])
    end = 0
    for section in sections:
        end += len(section)
        ends.append(end)
    return speed.encoding.BinarySource(memoryview(ends), memoryview(b"".join(sections)), None)
