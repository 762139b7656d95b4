"""Records as they travel inside of Spark: many in one row, as an Arrow stream.

A row of Spark's costs more than a record of ours. What is read comes as packets of one partition,
in order; what is to be written leaves as packets of any topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow

from ottla.records.arrow_encode import place_table
from ottla.spark.offset_ranges import OffsetRange
from ottla.streams.engine.records import InputRecord, OutputRecord

OUTPUT_RECORDS_MAX: Final = 20_000
"""Of one packet."""
_HEADER: Final = pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())])
INPUT_ARROW: Final = pyarrow.schema(
    [
        ("topic", pyarrow.string()),
        ("partition", pyarrow.int32()),
        ("offset", pyarrow.int64()),
        ("next_offset", pyarrow.int64()),
        ("records", pyarrow.binary()),
    ]
)
"""A packet that was read: the range of offsets it is, and what it holds of them."""
OUTPUT_ARROW: Final = pyarrow.schema(
    [("records", pyarrow.binary()), ("consumed", pyarrow.string())]
)
"""A packet to write, or word of what was consumed."""
_WRITTEN: Final = pyarrow.schema(
    [
        ("topic", pyarrow.string()),
        ("key", pyarrow.binary()),
        ("value", pyarrow.binary()),
        ("timestamp", pyarrow.timestamp("ms", tz="UTC")),
        ("headers", pyarrow.list_(_HEADER)),
        ("partition", pyarrow.int32()),
    ]
)
_READ: Final = ("key", "value", "timestamp", "offset", "headers")


def input_packets(
    whole: OffsetRange, batches: Iterable[pyarrow.RecordBatch]
) -> Iterator[pyarrow.RecordBatch]:
    """What the connector has read of a range, one row a batch; together they cover the range.

    The last one goes to the end even if there is no record: offsets are taken by markers as well.
    """
    start, held = whole.start, None
    for batch in batches:
        if not batch.num_rows:
            continue
        if held is not None:
            end = held.column("offset")[-1].as_py() + 1
            yield _input_packet(OffsetRange(whole.where, start, end), _packed_input(held))
            start = end
        held = batch
    last = b"" if held is None else _packed_input(held)
    yield _input_packet(OffsetRange(whole.where, start, whole.end), last)


def _input_packet(span: OffsetRange, records: bytes) -> pyarrow.RecordBatch:
    values = (span.where.topic, span.where.partition, span.start, span.end, records)
    return pyarrow.RecordBatch.from_arrays(
        [pyarrow.array([one], field.type) for one, field in zip(values, INPUT_ARROW, strict=True)],
        schema=INPUT_ARROW,
    )


def _packed_input(batch: pyarrow.RecordBatch) -> bytes:
    columns = [batch.column(name) for name in _READ]
    columns[2] = columns[2].cast(pyarrow.timestamp("ms", tz="UTC"), safe=False).cast("int64")
    return _packed(pyarrow.RecordBatch.from_arrays(columns, names=list(_READ)))


def input_records(packed: bytes) -> list[InputRecord]:
    """What a packet that was read holds, in order."""
    if not packed:
        return []
    batch = _unpacked(packed)
    keys, values, times, offsets = (batch.column(name).to_pylist() for name in _READ[:4])
    headers = batch.column("headers")
    if headers.null_count == len(headers):
        return [InputRecord(*four) for four in zip(keys, values, times, offsets, strict=True)]
    return [
        InputRecord(
            key, value, time_ms, offset, tuple((one["key"], one["value"]) for one in listed or ())
        )
        for key, value, time_ms, offset, listed in zip(
            keys, values, times, offsets, headers.to_pylist(), strict=True
        )
    ]


def output_packets(
    records: Sequence[OutputRecord], partition_counts: Mapping[str, int]
) -> Iterator[bytes]:
    """Records that are to be written, each with its partition where it has a key."""
    for first in range(0, len(records), OUTPUT_RECORDS_MAX):
        some = records[first : first + OUTPUT_RECORDS_MAX]
        columns: list[list[Any]] = [
            [record.topic for record in some],
            [record.key for record in some],
            [record.value for record in some],
            [record.timestamp_ms for record in some],
            [_headers(record) for record in some],
            _partitions(some, partition_counts),
        ]
        arrays = [
            pyarrow.array(column, field.type)
            for column, field in zip(columns, _WRITTEN, strict=True)
        ]
        yield _packed(pyarrow.RecordBatch.from_arrays(arrays, schema=_WRITTEN))


def written_batches(packets: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """The rows that packets of output hold, as the connector's sink takes them."""
    for batch in packets:
        for packed in batch.column("records"):
            if packed.is_valid:
                yield _unpacked(packed.as_buffer())


def _headers(record: OutputRecord) -> list[dict[str, Any]] | None:
    if not record.headers:
        return None
    return [{"key": name, "value": value} for name, value in record.headers]


def _partitions(records: Sequence[OutputRecord], counts: Mapping[str, int]) -> list[int | None]:
    """None where the sink is to choose: by the key's bytes, or any."""
    chosen = [record.partition for record in records]
    by_topic: dict[str, list[int]] = {}
    for row, record in enumerate(records):
        if record.partition is None and record.partition_key is not None:
            by_topic.setdefault(record.topic, []).append(row)
    for topic, rows in by_topic.items():
        if topic in counts:  # else a function named it: only windowed keys would differ
            keys = pyarrow.array([records[row].partition_key for row in rows], pyarrow.binary())
            placed = place_table(pyarrow.table({"key": keys}), counts[topic]).to_pylist()
            for row, place in zip(rows, placed, strict=True):
                chosen[row] = place
    return chosen


def _packed(batch: pyarrow.RecordBatch) -> bytes:
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def _unpacked(packed: bytes | pyarrow.Buffer) -> pyarrow.RecordBatch:
    with pyarrow.ipc.open_stream(packed) as stream:
        return stream.read_next_batch()


def read_columns(packed: bytes) -> pyarrow.RecordBatch:
    """What a packet that was read holds: key, value, timestamp in ms, offset and headers."""
    return _unpacked(packed)


def column_packets(topic: str, rows: pyarrow.RecordBatch) -> Iterator[bytes]:
    """Rows that are to be written to one topic: key, value, timestamp in ms, headers, partition."""
    for first in range(0, rows.num_rows, OUTPUT_RECORDS_MAX):
        some = rows.slice(first, OUTPUT_RECORDS_MAX)
        columns = [pyarrow.repeat(topic, some.num_rows)]
        columns += [
            some.column(field.name).cast(field.type) for field in _WRITTEN if field.name != "topic"
        ]
        yield _packed(pyarrow.RecordBatch.from_arrays(columns, schema=_WRITTEN))
