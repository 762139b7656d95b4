# cython: language_level=3, boundscheck=False, wraparound=False, infer_types=True
"""Records to columns and rows: the loops that run once for every record read.

Whoever runs this uncompiled runs the reference; compiled, the annotations are C types. What must
stay true:

1. Compiled, nothing checks an index: every read of a payload comes after a comparison with the end
   of its record, every write after a comparison with the room there is.
2. Whatever the bytes, both ways give the same answer or both raise InvalidRecord, and so does
   record.py.
3. A number that runs over its end or is too long leaves `position` at _BROKEN, which is past every
   end, so that the next comparison refuses it.

Does not know about batch headers, compression or Arrow. Columns are memoryviews that come in from
outside: of format "i" for int32, "q" for int64, "B" for bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ottla.errors import InvalidRecord
from ottla.records.record import RecordShape, as_int64

try:
    import cython
except ImportError:
    from ottla.records.accelerated import cython_absent as cython

if cython.compiled:
    from cython.cimports.cpython.buffer import PyBuffer_IsContiguous
    from cython.cimports.cpython.memoryview import PyMemoryView_GET_BUFFER
    from cython.cimports.libc.string import memcpy

Data: TypeAlias = bytes | bytearray | memoryview

IS_COMPILED: bool = cython.compiled

_BROKEN = cython.declare(cython.Py_ssize_t, 2**62)
_RECORD_BYTES_MIN = cython.declare(cython.Py_ssize_t, 7)
_COLUMN_BYTES_MAX = cython.declare(cython.Py_ssize_t, 2**31 - 1)
"""Arrow's binary columns count their bytes in 32 bits."""
_INT64_MAX = 2**63 - 1
_INT64_MIN = -(2**63)
_DAMAGED = "a record is damaged or ends early"


# --- memory from outside --------------------------------------------------------------------------


@cython.cfunc
def _memory(view: Any, item_bytes: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.p_void:
    """Where a memoryview's items begin, after making sure that `count` of that size are there."""
    if not isinstance(view, memoryview):
        raise TypeError("a column is a memoryview")
    if len(view) < count:  # raises ValueError where the view was released
        raise ValueError(f"a column of {len(view)} items, where {count} are needed")
    if cython.compiled:
        if PyMemoryView_GET_BUFFER(view).itemsize != item_bytes or not PyBuffer_IsContiguous(
            PyMemoryView_GET_BUFFER(view), b"C"
        ):
            raise ValueError(f"a column is contiguous and its items have {item_bytes} bytes")
        return PyMemoryView_GET_BUFFER(view).buf
    if view.itemsize != item_bytes or not view.c_contiguous:
        raise ValueError(f"a column is contiguous and its items have {item_bytes} bytes")
    return view


@cython.cfunc
def _writable(view: Any, item_bytes: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.p_void:
    """Where items may be written."""
    if isinstance(view, memoryview) and view.readonly:
        raise ValueError("a column to be filled is read-only")
    return _memory(view, item_bytes, count)


@cython.cfunc
def _int32s(view: Any, count: cython.Py_ssize_t) -> cython.p_int:
    if cython.compiled:
        return cython.cast(cython.p_int, _writable(view, 4, count))
    return _writable(view, 4, count)


@cython.cfunc
def _int64s(view: Any, count: cython.Py_ssize_t) -> cython.p_longlong:
    if cython.compiled:
        return cython.cast(cython.p_longlong, _writable(view, 8, count))
    return _writable(view, 8, count)


@cython.cfunc
def _bytes(data: Any, size: cython.Py_ssize_t) -> cython.p_const_uchar:
    """Where the bytes of `data` begin. They are the caller's to keep alive."""
    if cython.compiled:
        return cython.cast(cython.p_const_uchar, _memory(memoryview(data), 1, size))
    return data if isinstance(data, bytes) else bytes(data)  # Python reads those fastest


# --- one record -----------------------------------------------------------------------------------


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _unfinished(
    data: cython.p_const_uchar,
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    first: cython.ulonglong,
) -> tuple[cython.ulonglong, cython.Py_ssize_t]:
    """The unsigned number whose first byte, just before `position`, says that more follow."""
    value: cython.ulonglong = first & 0x7F
    shift: cython.int = 7
    byte: cython.ulonglong
    while position < end and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if not cython.compiled:
                value &= 0xFFFFFFFFFFFFFFFF
            return value, position
        shift += 7
    return 0, _BROKEN


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _number(
    data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[cython.ulonglong, cython.Py_ssize_t]:
    """The unsigned number at `position`."""
    if position >= end:
        return 0, _BROKEN
    first: cython.ulonglong = data[position]
    if first < 0x80:
        return first, position + 1
    second: cython.ulonglong = data[position + 1] if position + 1 < end else 0x80
    if second < 0x80:
        return first & 0x7F | second << 7, position + 2
    return _unfinished(data, position + 1, end, first)


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _after_headers(
    data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t]:
    """How many headers stand at `position`, and where they end."""
    stored: cython.ulonglong
    count: cython.Py_ssize_t
    left: cython.Py_ssize_t
    stored, position = _number(data, position, end)
    # Each takes two bytes at least: a larger count is a lie that only its loop would find out.
    if position > end or stored & 1 or (stored >> 1) > ((end - position) >> 1):
        return 0, _BROKEN
    count = stored >> 1
    left = count
    while left > 0:
        left -= 1
        stored, position = _number(data, position, end)
        if position > end or stored & 1 or (stored >> 1) > end - position:
            return 0, _BROKEN
        position += stored >> 1
        stored, position = _number(data, position, end)
        if position > end:
            return 0, _BROKEN
        if not stored & 1:
            if (stored >> 1) > end - position:
                return 0, _BROKEN
            position += stored >> 1
    return count, position


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _parse(
    data: cython.p_const_uchar, position: cython.Py_ssize_t, size: cython.Py_ssize_t
) -> tuple[
    cython.Py_ssize_t,
    cython.ulonglong,
    cython.ulonglong,
    cython.Py_ssize_t,
    cython.Py_ssize_t,
    cython.Py_ssize_t,
    cython.Py_ssize_t,
    cython.Py_ssize_t,
    cython.Py_ssize_t,
]:
    """The record at `position`: its end, or _BROKEN where the bytes are no record; the deltas of
    timestamp and offset as stored; start and end of key and value, the start -1 for null; start
    and count of the headers.
    """
    stored: cython.ulonglong
    timestamp: cython.ulonglong
    offset: cython.ulonglong
    end: cython.Py_ssize_t
    key_start: cython.Py_ssize_t = -1
    key_end: cython.Py_ssize_t
    value_start: cython.Py_ssize_t = -1
    value_end: cython.Py_ssize_t
    headers_start: cython.Py_ssize_t
    header_count: cython.Py_ssize_t = 0
    stored, position = _number(data, position, size)
    if position > size or (stored >> 1) > size - position:
        return _BROKEN, 0, 0, 0, 0, 0, 0, 0, 0
    end = position + (stored >> 1)
    timestamp, position = _number(data, position + 1, end)  # after the attributes, none in use
    offset, position = _number(data, position, end)
    stored, position = _number(data, position, end)
    if not stored & 1:
        if position > end or (stored >> 1) > end - position:
            return _BROKEN, 0, 0, 0, 0, 0, 0, 0, 0
        key_start = position
        position += stored >> 1
    key_end = position
    stored, position = _number(data, position, end)
    if not stored & 1:
        if position > end or (stored >> 1) > end - position:
            return _BROKEN, 0, 0, 0, 0, 0, 0, 0, 0
        value_start = position
        position += stored >> 1
    value_end = position
    headers_start = position
    if position < end and data[position] == 0:
        position += 1
    else:
        header_count, position = _after_headers(data, position, end)
    if position != end:
        return _BROKEN, 0, 0, 0, 0, 0, 0, 0, 0
    return (
        end,
        timestamp,
        offset,
        key_start,
        key_end,
        value_start,
        value_end,
        headers_start,
        header_count,
    )


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _sum(base: cython.longlong, stored: cython.ulonglong) -> cython.longlong:
    """`base` and the delta that is stored, in 64 bits that wrap around."""
    if cython.compiled:
        return base + (stored >> 1 ^ -(stored & 1))
    return _wrapped(base + (stored >> 1 ^ -(stored & 1)))


def _wrapped(total: int) -> int:
    return total if _INT64_MIN <= total <= _INT64_MAX else as_int64(total)


@cython.cfunc
def _checked_count(shape: RecordShape, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
    if not 0 <= shape.record_count <= size // _RECORD_BYTES_MIN:
        raise InvalidRecord(f"{shape.record_count} records cannot stand in {size} bytes")
    return shape.record_count


# --- as produced ----------------------------------------------------------------------------------


def check_produced(payload: Data, record_count: int, needs_keys: bool) -> tuple[int, int]:
    """The least and the greatest delta of the records' timestamps; InvalidRecord unless `payload`
    is so many records, at offsets that count from 0, with keys if asked.

    Walks over lengths alone, so that a broker can afford it for all it is sent.
    """
    size: cython.Py_ssize_t = len(payload)
    if not 0 < record_count <= size // _RECORD_BYTES_MIN:
        raise InvalidRecord(f"{record_count} records cannot stand in {size} bytes")
    count: cython.ulonglong = record_count
    index: cython.ulonglong = 0
    with_keys: cython.bint = needs_keys
    earliest: cython.longlong = _INT64_MAX
    latest: cython.longlong = _INT64_MIN
    timestamp: cython.longlong
    key: cython.Py_ssize_t = 0
    offset: cython.ulonglong = 0
    data = _bytes(payload, size)
    position: cython.Py_ssize_t = 0
    with cython.nogil:
        while index < count:
            (position, stored, offset, key, _key_end, _value, _value_end, _header, _count) = _parse(
                data, position, size
            )
            if position > size or offset != index << 1 or (with_keys and key < 0):
                break
            timestamp = _sum(0, stored)
            if timestamp < earliest:
                earliest = timestamp
            if timestamp > latest:
                latest = timestamp
            index += 1
    if position > size:
        raise InvalidRecord(f"record {index} of {count} is damaged or ends early")
    if index < count:
        if offset != index << 1:
            raise InvalidRecord(f"record {index} of {count} does not stand at offset {index}")
        raise InvalidRecord("a record of a compacted topic has no key")
    if position != size:
        raise InvalidRecord(f"{size - position} bytes are left after the last record")
    return earliest, latest


# --- to columns -----------------------------------------------------------------------------------

KEYS = 0
VALUES = 1
HEADERS = 2
"""The columns of a RecordIndex's places. The ends of HEADERS count headers, not bytes."""


class Places:
    """Where the values of some binary columns stand in their payloads, and where in their column.

    The columns follow one another: in `starts` each has `room` numbers, a value's start in its
    payload or -1 for null; in `ends` one more, a 0 and then each value's end in the column.
    """

    __slots__ = ("columns", "count", "ends", "room", "starts")

    def __init__(self, columns: int, starts: memoryview, ends: memoryview) -> None:
        self.columns = columns
        self.room = len(starts) // columns
        self.starts = starts
        self.ends = ends
        self.count = 0
        """How many rows are filled."""
        for column in range(columns):
            ends[column * (self.room + 1)] = 0

    def starts_of(self, column: int) -> memoryview:
        """The starts of one column's values."""
        first = column * self.room
        return self.starts[first : first + self.count]

    def ends_of(self, column: int) -> memoryview:
        """A 0 and the ends of one column's values: what Arrow calls offsets."""
        first = column * (self.room + 1)
        return self.ends[first : first + self.count + 1]


class RecordIndex:
    """Finds the parts of records, payload after payload. Offsets and timestamps it knows at once.

    Records before `first_offset` and after `last_offset` are checked and left out.
    """

    __slots__ = ("first_offset", "last_offset", "numbers", "places")

    def __init__(self, numbers: memoryview, places: Places) -> None:
        """`numbers` has room for the offsets of all rows, then for their timestamps."""
        self.numbers = numbers
        self.places = places
        self.first_offset = -(2**63)
        self.last_offset = 2**63 - 1

    def add(self, payload: Data, shape: RecordShape) -> None:
        """Take in a payload's records; InvalidRecord where that is not what it holds."""
        places = self.places
        size: cython.Py_ssize_t = len(payload)
        left: cython.Py_ssize_t = _checked_count(shape, size)
        row: cython.Py_ssize_t = places.count
        room: cython.Py_ssize_t = places.room
        if left > room - row or row < 0:
            raise ValueError(f"no room for {left} records in {room} rows, {row} of them taken")
        numbers = _int64s(self.numbers, 2 * room)
        starts = _int32s(places.starts, 3 * room)
        ends = _int32s(places.ends, 3 * room + 3)
        value_row = room + 1
        header_row = 2 * room + 2
        keys_end: cython.Py_ssize_t = ends[row]
        values_end: cython.Py_ssize_t = ends[value_row + row]
        headers_end: cython.Py_ssize_t = ends[header_row + row]
        if size > _COLUMN_BYTES_MAX - max(keys_end, values_end, headers_end):
            raise ValueError("a column holds less than 2 GiB")
        offset_base: cython.longlong = shape.base_offset
        timestamp_base: cython.longlong = shape.base_timestamp
        is_append_time: cython.bint = shape.append_time is not None
        if is_append_time:
            timestamp_base = shape.append_time
        first_offset: cython.longlong = self.first_offset
        last_offset: cython.longlong = self.last_offset
        offset: cython.longlong
        timestamp: cython.longlong
        data = _bytes(payload, size)
        position: cython.Py_ssize_t = 0
        with cython.nogil:
            while left > 0:
                left -= 1
                (position, stored, offset_stored, key, key_end, value, value_end, header, count) = (
                    _parse(data, position, size)
                )
                if position > size:
                    break
                offset = _sum(offset_base, offset_stored)
                if offset < first_offset or offset > last_offset:
                    continue
                timestamp = timestamp_base if is_append_time else _sum(timestamp_base, stored)
                numbers[row] = offset
                numbers[room + row] = timestamp
                starts[row] = key
                starts[room + row] = value
                starts[2 * room + row] = header
                row += 1
                if key >= 0:
                    keys_end += key_end - key
                if value >= 0:
                    values_end += value_end - value
                headers_end += count
                ends[row] = keys_end
                ends[value_row + row] = values_end
                ends[header_row + row] = headers_end
        if position > size:
            raise InvalidRecord(_DAMAGED)
        if position != size:
            raise InvalidRecord(f"{size - position} bytes are left after the last record")
        places.count = row


def index_headers(payload: Data, starts: memoryview, ends: memoryview, places: Places) -> None:
    """Find the headers of some of a RecordIndex's rows, whose records stand in `payload`.

    `starts` and `ends` are the rows' part of its HEADERS; keys and values go to `places`.
    """
    size: cython.Py_ssize_t = len(payload)
    rows: cython.Py_ssize_t = len(starts)
    data = _bytes(payload, size)
    start_of = _int32s(starts, rows)
    count_of = _int32s(ends, rows + 1)
    at: cython.Py_ssize_t = places.count
    room: cython.Py_ssize_t = places.room
    if not 0 <= at <= room:
        raise ValueError(f"{at} headers in {room} places")
    header_starts = _int32s(places.starts, 2 * room)
    header_ends = _int32s(places.ends, 2 * room + 2)
    keys_end: cython.Py_ssize_t = header_ends[at]
    values_end: cython.Py_ssize_t = header_ends[room + 1 + at]
    row: cython.Py_ssize_t
    left: cython.Py_ssize_t
    position: cython.Py_ssize_t
    for row in range(rows):
        if count_of[row + 1] == count_of[row]:
            continue
        if start_of[row] < 0:
            raise ValueError(f"row {row} has no place for its headers")
        left, position = _after_headers(data, start_of[row], size)
        if position > size or left != count_of[row + 1] - count_of[row] or left > room - at:
            raise ValueError(f"row {row} is not in this payload, or its headers have no room")
        _, position = _number(data, start_of[row], size)
        while left > 0:
            left -= 1
            stored, position = _number(data, position, size)
            header_starts[at] = position
            position += stored >> 1
            keys_end += stored >> 1
            stored, position = _number(data, position, size)
            header_starts[room + at] = -1
            if not stored & 1:
                header_starts[room + at] = position
                position += stored >> 1
                values_end += stored >> 1
            at += 1
            header_ends[at] = keys_end
            header_ends[room + 1 + at] = values_end
    places.count = at


def copy_values(payload: Data, starts: memoryview, ends: memoryview, target: memoryview) -> None:
    """Copy what stands at `starts` in `payload` to before `ends` in `target`; see Places."""
    row: cython.Py_ssize_t
    start: cython.Py_ssize_t
    place: cython.Py_ssize_t
    length: cython.Py_ssize_t
    size: cython.Py_ssize_t = len(payload)
    count: cython.Py_ssize_t = len(starts)
    room: cython.Py_ssize_t = len(target)
    start_of = _int32s(starts, count)
    end_of = _int32s(ends, count + 1)
    source = _bytes(payload, size)
    if cython.compiled:
        column = cython.cast(cython.p_uchar, _writable(target, 1, room))
    fits: cython.bint = True
    row = 0
    with cython.nogil:
        while row < count:
            place = end_of[row]
            length = end_of[row + 1] - place
            start = start_of[row]
            if length != 0:
                fits = 0 <= length <= room - place and place >= 0 and 0 <= start <= size - length
                if not fits:
                    break
                if cython.compiled:
                    memcpy(column + place, source + start, length)
                else:
                    target[place : place + length] = source[start : start + length]
            row += 1
    if not fits:
        raise ValueError(f"row {row} is not in this payload, or has no room in this column")


def validity(starts: memoryview) -> tuple[int, bytearray]:
    """How many values are null, and if any is, Arrow's bitmap: a bit for each value."""
    if not cython.compiled and -1 not in starts.tolist():
        return 0, bytearray()
    row: cython.Py_ssize_t
    nulls: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t = len(starts)
    start_of = _int32s(starts, count)
    bitmap = bytearray((count + 7) >> 3)
    bits: cython.p_uchar = bitmap
    for row in range(count):
        if start_of[row] < 0:
            nulls += 1
        else:
            bits[row >> 3] |= 1 << (row & 7)
    return nulls, bitmap if nulls else bytearray()


# --- to rows --------------------------------------------------------------------------------------


def decode_rows(
    payload: Data, shape: RecordShape, make_row: Callable[..., Any] | None = None
) -> list[Any]:
    """Each record as `make_row(offset, timestamp, key, value, headers)`, or as a tuple of these."""
    size: cython.Py_ssize_t = len(payload)
    left: cython.Py_ssize_t = _checked_count(shape, size)
    offset_base: cython.longlong = shape.base_offset
    timestamp_base: cython.longlong = shape.base_timestamp
    is_append_time: cython.bint = shape.append_time is not None
    if is_append_time:
        timestamp_base = shape.append_time
    offset: cython.longlong
    timestamp: cython.longlong
    data = _bytes(payload, size)
    position: cython.Py_ssize_t = 0
    rows: list[Any] = []
    key_bytes: object
    value_bytes: object
    while left > 0:
        left -= 1
        (position, stored, offset_stored, key, key_end, value, value_end, header, count) = _parse(
            data, position, size
        )
        if position > size:
            raise InvalidRecord(_DAMAGED)
        offset = _sum(offset_base, offset_stored)
        timestamp = timestamp_base if is_append_time else _sum(timestamp_base, stored)
        key_bytes = data[key:key_end] if key >= 0 else None
        value_bytes = data[value:value_end] if value >= 0 else None
        headers = _headers(data, header, position) if count else ()
        if make_row is None:
            rows.append((offset, timestamp, key_bytes, value_bytes, headers))
        else:
            rows.append(make_row(offset, timestamp, key_bytes, value_bytes, headers))
    if position != size:
        raise InvalidRecord(f"{size - position} bytes are left after the last record")
    return rows


@cython.cfunc
def _headers(
    data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[Any, ...]:
    """The headers at `position`, where _parse found that there are some."""
    left, position = _number(data, position, end)
    left >>= 1
    headers = []
    value: object
    while left > 0:
        left -= 1
        stored, position = _number(data, position, end)
        key = data[position : position + (stored >> 1)].decode("utf-8", "replace")
        position += stored >> 1
        stored, position = _number(data, position, end)
        value = None
        if not stored & 1:
            value = data[position : position + (stored >> 1)]
            position += stored >> 1
        headers.append((key, value))
    return tuple(headers)
