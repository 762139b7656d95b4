"""Compiled, uncompiled and record by record: three ways, one answer, whatever the bytes."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple

from ottla.errors import InvalidRecord
from ottla.records.batch import RecordBatch
from ottla.records.builder import build_batch
from ottla.records.compression import Compression
from ottla.records.record import (
    Record,
    RecordShape,
    as_int64,
    decode_records,
    encode_headers,
    varint,
)
from support.record_loops import COMPILED, REFERENCE, Loops, using

ALL_LOOPS = [REFERENCE] if COMPILED is None else [REFERENCE, COMPILED]
INT64 = st.integers(-(2**63), 2**63 - 1)

maybe_bytes = st.none() | st.binary(max_size=200) | st.integers(0, 9_000).map(bytes)
headers = st.lists(st.tuples(st.text(max_size=70), maybe_bytes), max_size=4).map(tuple)
timestamps = INT64 | st.integers(0, 300)
rows = st.lists(st.tuples(timestamps, maybe_bytes, maybe_bytes, headers), max_size=8)
numbers = st.sampled_from([0, 1, -1, 63, 64, -64, -65, 8191, 8192, 2**31, 2**62, 2**63 - 1]).map(
    varint
) | st.integers(1, 12).map(lambda size: b"\xff" * size)
edits = st.lists(
    st.tuples(
        st.sampled_from(["replace", "insert", "cut", "flip"]), st.integers(0, 2**16), numbers
    ),
    max_size=4,
)
shapes = st.builds(
    RecordShape,
    base_offset=st.sampled_from([0, 7, 2**63 - 1, -(2**63)]),
    base_timestamp=st.sampled_from([0, 10**12, 2**63 - 1, -(2**63)]),
    append_time=st.sampled_from([None, None, 9]),
    record_count=st.integers(-1, 9) | st.just(2**31 - 1),
    last_offset_delta=st.just(0),
)


def edited(payload: bytes, changes: list[tuple[str, int, bytes]]) -> bytes:
    data = bytearray(payload)
    for kind, place, number in changes:
        at = place % (len(data) + 1)
        if kind == "replace":
            data[at : at + len(number)] = number
        elif kind == "insert":
            data[at:at] = number
        elif kind == "cut":
            del data[at:]
        elif at < len(data):
            data[at] ^= 1 << place % 8
    return bytes(data)


def one_by_one(payload: bytes, shape: RecordShape) -> list[tuple[Any, ...]] | None:
    try:
        return [
            (as_int64(offset), as_int64(timestamp), key, value, headers)
            for offset, timestamp, key, value, headers in map(
                astuple, decode_records(payload, shape)
            )
        ]
    except InvalidRecord:
        return None


def as_rows(loops: Loops, payload: bytes, shape: RecordShape) -> list[tuple[Any, ...]] | None:
    try:
        return loops.decoding.decode_rows(memoryview(payload), shape)
    except InvalidRecord:
        return None


def values_of(loops: Loops, payload: bytes, places: Any, column: int) -> list[bytes | None]:
    """A column as it is after everything that is done for Arrow."""
    starts, ends = places.starts_of(column), places.ends_of(column)
    data = bytearray(ends[places.count])
    loops.decoding.copy_values(payload, starts, ends, memoryview(data))
    nulls, bits = loops.decoding.validity(starts)
    values = [
        bytes(data[ends[row] : ends[row + 1]])
        if not nulls or bits[row >> 3] >> (row & 7) & 1
        else None
        for row in range(places.count)
    ]
    assert values.count(None) == nulls
    return values


def as_columns(loops: Loops, payload: bytes, shape: RecordShape) -> list[tuple[Any, ...]] | None:
    room = min(max(shape.record_count, 0), len(payload))
    decoding = loops.decoding
    places = a_places(loops, 3, room)
    index = decoding.RecordIndex(memoryview(bytearray(16 * room)).cast("q"), places)
    try:
        index.add(payload, shape)
    except InvalidRecord:
        return None
    counts = places.ends_of(decoding.HEADERS)
    items = a_places(loops, 2, counts[places.count])
    decoding.index_headers(payload, places.starts_of(decoding.HEADERS), counts, items)
    names = [str(key, "utf-8", "replace") for key in values_of(loops, payload, items, 0)]
    pairs = list(zip(names, values_of(loops, payload, items, 1), strict=True))
    return list(
        zip(
            index.numbers[: places.count].tolist(),
            index.numbers[room : room + places.count].tolist(),
            values_of(loops, payload, places, decoding.KEYS),
            values_of(loops, payload, places, decoding.VALUES),
            [tuple(pairs[counts[row] : counts[row + 1]]) for row in range(places.count)],
            strict=True,
        )
    )


def a_places(loops: Loops, columns: int, room: int) -> Any:
    return loops.decoding.Places(
        columns,
        memoryview(bytearray(4 * columns * room)).cast("i"),
        memoryview(bytearray(4 * columns * (room + 1))).cast("i"),
    )


def built(rows: list[Any]) -> bytearray:
    return build_batch([Record(0, *row) for row in rows])


def agree(payload: bytes, shape: RecordShape) -> None:
    expected = one_by_one(payload, shape)
    for loops in ALL_LOOPS:
        assert as_rows(loops, payload, shape) == expected
        assert as_columns(loops, payload, shape) == expected


@given(rows=rows, changes=edits, shape=shapes, keeps_count=st.booleans())
@settings(max_examples=400)
def test_whatever_becomes_of_a_payload_all_ways_agree(
    rows: list[Any], changes: list[tuple[str, int, bytes]], shape: RecordShape, keeps_count: bool
) -> None:
    batch = RecordBatch(memoryview(built(rows)))
    if keeps_count:
        shape = RecordShape(
            shape.base_offset, shape.base_timestamp, shape.append_time, batch.record_count, 0
        )
    agree(edited(batch.payload(), changes), shape)


@given(payload=st.binary(max_size=80) | st.lists(numbers, max_size=16).map(b"".join), shape=shapes)
@example(payload=b"\x0c" + bytes(6), shape=RecordShape(0, 0, None, 1, 0))
def test_of_random_bytes_all_ways_think_the_same(payload: bytes, shape: RecordShape) -> None:
    agree(payload, shape)


@given(rows=rows)
def test_records_gathered_one_by_one_make_the_same_payload_in_every_way(rows: list[Any]) -> None:
    expected = RecordBatch(memoryview(built(rows))).payload()
    for loops in ALL_LOOPS:
        gatherer = loops.encoding.RecordGatherer(3, 2**30)
        for number, (timestamp, key, value, headers) in enumerate(rows):
            assert gatherer.append(timestamp, key, value, encode_headers(headers)) == number
        assert bytes(gatherer.payload()) == bytes(3) + expected


@given(rows=rows, batch_bytes=st.integers(62, 1_000), codec=st.sampled_from(list(Compression)))
def test_a_table_goes_through_batches_and_comes_back(
    rows: list[Any], batch_bytes: int, codec: Compression
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from ottla.records.arrow_decode import decode_batches
    from ottla.records.arrow_encode import TableEncoding, encode_table

    whole = RecordBatch(memoryview(built(rows)))
    made = []
    for loops in ALL_LOOPS:
        with using(loops):
            table = decode_batches([whole], 1)
            table.validate(full=True)
            batches = list(encode_table(table, 0, TableEncoding(batch_bytes, codec)))
            again = decode_batches([RecordBatch(memoryview(batch)) for batch in batches], 1)
        assert again.drop_columns("offset").equals(table.drop_columns("offset"))
        assert isinstance(table, pyarrow.Table)
        made.append((table, batches))
    assert all(way == made[0] for way in made)
