# cython: language_level=3, boundscheck=False, wraparound=False, infer_types=True
"""Records as they come or from columns, and where they go: the loops of whoever writes.

Compiled, a payload is measured and then written. Uncompiled, record.py encodes, because Python
joins small pieces faster than it writes bytes one by one; the payload is the same. What must stay
true: compiled, nothing checks an index, so nothing is written that was not measured before.

Does not know about batch headers, compression or Arrow. Columns are memoryviews that come in from
outside: of format "i" for int32, "q" for int64, "B" for bytes.
"""

from __future__ import annotations

from array import array
from typing import Any

from ottla.errors import InvalidRecord, RecordTooLarge
from ottla.records.record import encode_headers, encode_record, varint, with_length

try:
    import cython
except ImportError:
    from ottla.records.accelerated import cython_absent as cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import (
        PyByteArray_AS_STRING,
        PyByteArray_FromStringAndSize,
        PyByteArray_Resize,
    )
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING
    from cython.cimports.cpython.memoryview import PyMemoryView_GET_BUFFER
    from cython.cimports.libc.string import memcpy, memset

IS_COMPILED: bool = cython.compiled

_PAYLOAD_BYTES_MAX = cython.declare(cython.Py_ssize_t, 2**31 - 1)
"""A batch counts its bytes in 32 bits."""
_NO_HEADERS = b"\0"
_FIRST_BYTES_MAX = cython.declare(cython.Py_ssize_t, 1024 * 1024)
"""What a gatherer takes of its room at first."""
_COUNTED_BYTES = cython.declare(cython.Py_ssize_t, 11)
"""What a gatherer counts for a record besides key, value and headers."""
_MURMUR_SEED = cython.declare(cython.ulonglong, 0x9747B28C)
_MURMUR_MIX = cython.declare(cython.ulonglong, 0x5BD1E995)
_32_BITS = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_CASTAGNOLI = cython.declare(cython.ulonglong, 0x82F63B78)  # the highest power in the lowest bit

# --- one record -----------------------------------------------------------------------------------


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _number_bytes(number: cython.ulonglong) -> cython.Py_ssize_t:
    """How many bytes _put will take."""
    size: cython.Py_ssize_t = 1
    while number > 0x7F:
        number >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _put(
    target: cython.p_uchar, position: cython.Py_ssize_t, number: cython.ulonglong
) -> cython.Py_ssize_t:
    """Write an unsigned number where there is room for it, and return where it ends."""
    while number > 0x7F:
        target[position] = number & 0x7F | 0x80
        number >>= 7
        position += 1
    target[position] = number
    return position + 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _put_nullable(
    target: cython.p_uchar,
    position: cython.Py_ssize_t,
    source: cython.p_const_uchar,
    size: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Write a length and that many bytes; -1 stands for null."""
    if size < 0:
        target[position] = 1
        return position + 1
    position = _put(target, position, size << 1)
    memcpy(target + position, source, size)
    return position + size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _delta(number: cython.ulonglong, base: cython.ulonglong) -> cython.ulonglong:
    """The difference of two numbers of 64 bits as it is stored."""
    difference: cython.ulonglong = number - base
    return (difference << 1) ^ (0 - (difference >> 63))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _body_bytes(
    timestamp: cython.ulonglong,
    row: cython.Py_ssize_t,
    key: cython.Py_ssize_t,
    value: cython.Py_ssize_t,
    headers: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """What a record takes after its length, by its number in the batch and its parts' sizes."""
    size: cython.Py_ssize_t = 3 + headers + _number_bytes(timestamp) + _number_bytes(row << 1)
    if key >= 0:
        size += key - 1 + _number_bytes(key << 1)
    if value >= 0:
        size += value - 1 + _number_bytes(value << 1)
    return size


# --- their memory ---------------------------------------------------------------------------------


@cython.cfunc
@cython.inline
def _new_payload(prefix_bytes: cython.Py_ssize_t, size: cython.Py_ssize_t) -> bytearray:
    """Room for a payload of `size` after a prefix of zeros."""
    if not 0 <= size <= _PAYLOAD_BYTES_MAX - prefix_bytes or prefix_bytes < 0:
        raise RecordTooLarge(size, _PAYLOAD_BYTES_MAX)
    if cython.compiled:
        payload: bytearray = PyByteArray_FromStringAndSize(cython.NULL, prefix_bytes + size)
        memset(PyByteArray_AS_STRING(payload), 0, prefix_bytes)
        return payload
    return bytearray(prefix_bytes + size)


@cython.cfunc
def _used_again(
    spare: bytearray | None, prefix_bytes: cython.Py_ssize_t, size: cython.Py_ssize_t
) -> bytearray:
    """Room for a payload in a bytearray that has done its work, if that can be had."""
    if spare is None or not 0 <= size <= _PAYLOAD_BYTES_MAX - prefix_bytes or prefix_bytes < 0:
        return _new_payload(prefix_bytes, size)
    try:
        PyByteArray_Resize(spare, prefix_bytes + size)
    except BufferError:  # somebody looks at it still
        return _new_payload(prefix_bytes, size)
    memset(PyByteArray_AS_STRING(spare), 0, prefix_bytes)
    return spare


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _start(data: bytes | None) -> cython.p_const_uchar:
    """Where the bytes begin; null for None."""
    if not cython.compiled:
        return data
    if data is None:
        return cython.NULL
    return cython.cast(cython.p_const_uchar, PyBytes_AS_STRING(data))


# --- as they come ---------------------------------------------------------------------------------


@cython.final
@cython.cclass
class RecordGatherer:
    """Records of one batch, taken one by one; compiled, each is encoded when it comes.

    Compiled, `append` runs no other code and keeps the interpreter from it: any thread may call it
    without a lock while others do, or close it. Uncompiled, callers need a lock.
    """

    buffer: bytearray
    position: cython.Py_ssize_t
    counted: cython.Py_ssize_t
    room: cython.Py_ssize_t
    number: cython.Py_ssize_t
    is_closed: cython.bint
    base: cython.longlong
    last: cython.longlong
    greatest: cython.longlong
    last_given: object
    given: list[Any]
    keys: list[Any]
    values: list[Any]
    sections: dict[int, bytes]

    def __init__(self, prefix_bytes: int, room: int) -> None:
        """Takes records as long as they and the prefix, as it counts them, have `room`."""
        self.room = room
        self.position = prefix_bytes
        self.counted = prefix_bytes
        self.number = 0
        self.is_closed = False
        self.base = 0
        self.last = 0
        self.greatest = 0
        self.last_given = None
        self.given = []
        self.keys = []
        self.values = []
        self.sections = {}
        first = min(room, _FIRST_BYTES_MAX) if cython.compiled else 0
        self.buffer = _new_payload(prefix_bytes, max(0, first - prefix_bytes))

    def append(self, timestamp: Any, key: Any, value: Any, section: bytes = _NO_HEADERS) -> int:
        """Takes a record with its headers, encoded; returns its number, or -1 if it is not taken:
        closed, no room, or key or value are neither bytes nor None.
        """
        stamp: cython.longlong = timestamp
        counted: cython.Py_ssize_t = self.counted + _COUNTED_BYTES + len(section)
        if key is not None:
            if type(key) is not bytes:
                return -1
            counted += len(key)
        if value is not None:
            if type(value) is not bytes:
                return -1
            counted += len(value)
        if self.is_closed or counted > self.room:
            return -1
        number: cython.Py_ssize_t = self.number
        if number == 0:
            self.base = stamp
            self.greatest = stamp
        elif stamp > self.greatest:
            self.greatest = stamp
        if number == 0 or stamp != self.last:
            self.last = stamp
            self.last_given = timestamp
        self.given.append(self.last_given)  # few numbers for many records of one millisecond
        if cython.compiled:
            self._write(_delta(stamp, self.base), key, value, section)
        else:
            self.keys.append(key)
            self.values.append(value)
            if section != _NO_HEADERS:
                self.sections[number] = section
        self.counted = counted
        self.number = number + 1
        return number

    @cython.cfunc
    @cython.inline
    def _write(
        self, stored: cython.ulonglong, key: bytes | None, value: bytes | None, section: bytes
    ) -> cython.int:
        """Encode one record at the end, where room is made for it first."""
        key_size: cython.Py_ssize_t = -1 if key is None else len(key)
        value_size: cython.Py_ssize_t = -1 if value is None else len(value)
        body = _body_bytes(stored, self.number, key_size, value_size, len(section))
        position: cython.Py_ssize_t = self.position
        needed: cython.Py_ssize_t = position + body + _number_bytes(body << 1)
        if needed > len(self.buffer):
            if needed > _PAYLOAD_BYTES_MAX:
                raise RecordTooLarge(needed, _PAYLOAD_BYTES_MAX)
            PyByteArray_Resize(self.buffer, max(needed, min(2 * len(self.buffer), self.room)))
        target: cython.p_uchar = self.buffer
        position = _put(target, position, body << 1)
        position = _put(target, position, 0)
        position = _put(target, position, stored)
        position = _put(target, position, self.number << 1)
        position = _put_nullable(target, position, _start(key), key_size)
        position = _put_nullable(target, position, _start(value), value_size)
        memcpy(target + position, _start(section), len(section))
        self.position = position + len(section)
        return 0

    def grow(self, room: int) -> None:
        """Takes more records from now on, up to `room`."""
        self.room = room

    def close(self) -> None:
        """Takes no more."""
        self.is_closed = True

    def payload(self) -> bytearray:
        """The prefix, zeros, and the records. Asked for once, after the end."""
        self.is_closed = True
        payload = self.buffer
        self.buffer = bytearray()
        if cython.compiled:
            PyByteArray_Resize(payload, self.position)
            return payload
        del payload[self.position :]
        payload += _joined_columns(self.given, self.keys, self.values, self.sections)
        self.keys, self.values, self.sections = [], [], {}
        return payload

    def count(self) -> int:
        """How many there are."""
        return self.number

    def size(self) -> int:
        """What they and the prefix take, about."""
        return self.counted

    def timestamps(self) -> list[Any]:
        """Those of all records, in a list that grows with them."""
        return self.given

    def max_timestamp(self) -> int:
        """The greatest."""
        return self.greatest


_SMALL = () if cython.compiled else tuple(varint(number) for number in range(4096))


@cython.cfunc
def _joined_columns(
    timestamps: list[int], keys: list[Any], values: list[Any], sections: dict[int, bytes]
) -> bytes:
    """What a gatherer encodes, in the way that Python does it fastest: a loop without calls."""
    small, small_count = _SMALL, len(_SMALL)
    parts: list[bytes] = []
    last_timestamp = None
    stamp = b""  # attributes, of which there are none, and the timestamp's distance
    for number, (timestamp, key, value) in enumerate(zip(timestamps, keys, values, strict=True)):
        if timestamp != last_timestamp:
            last_timestamp = timestamp
            stamp = b"\0" + varint(timestamp - timestamps[0])
        section = sections.get(number, _NO_HEADERS) if sections else _NO_HEADERS
        place = small[number] if number < small_count else varint(number)
        size = len(stamp) + len(place) + len(section)
        if key is None:
            key_size, key = b"\x01", b""
        else:
            length = len(key)
            key_size = small[length] if length < small_count else varint(length)
        if value is None:
            value_size, value = b"\x01", b""
        else:
            length = len(value)
            value_size = small[length] if length < small_count else varint(length)
        size += len(key_size) + len(key) + len(value_size) + len(value)
        record_size = small[size] if size < small_count else varint(size)
        parts += (record_size, stamp, place, key_size, key, value_size, value, section)
    return b"".join(parts)


# --- from columns ---------------------------------------------------------------------------------


@cython.cfunc
def _memory(view: Any, item_bytes: cython.Py_ssize_t) -> cython.p_void:
    """Where a memoryview's items begin, sure to be contiguous and of that size."""
    if not isinstance(view, memoryview):
        raise TypeError("a column is a memoryview")
    if view.itemsize != item_bytes or not view.c_contiguous:
        raise ValueError(f"a column is contiguous and its items have {item_bytes} bytes")
    if cython.compiled:
        return PyMemoryView_GET_BUFFER(view).buf
    return view


@cython.final
@cython.cclass
class BinarySource:
    """A binary column of Arrow's: its values' ends after their first start, bytes, null bits."""

    ends: cython.p_const_int
    data: cython.p_const_uchar
    bits: cython.p_const_uchar
    has_nulls: cython.bint
    first_bit: cython.Py_ssize_t
    count: cython.Py_ssize_t
    memory: object

    def __init__(
        self, ends: memoryview, data: memoryview, bits: memoryview | None, first_bit: int = 0
    ) -> None:
        """`first_bit` is where in `bits` the first row's stands; without `bits` none is null."""
        size: cython.Py_ssize_t = len(data)
        row: cython.Py_ssize_t
        if len(ends) < 1 or ends[0] < 0 or ends[len(ends) - 1] > size:
            raise ValueError("a column's ends lie outside its bytes")
        self.count = len(ends) - 1
        self.has_nulls = bits is not None
        self.first_bit = first_bit
        if first_bit < 0 or (bits is not None and 8 * len(bits) < first_bit + self.count):
            raise ValueError(f"the null bits of {self.count} rows are not all there")
        self.memory = (ends, data, bits)
        if cython.compiled:
            self.ends = cython.cast(cython.p_const_int, _memory(ends, 4))
            self.data = cython.cast(cython.p_const_uchar, _memory(data, 1))
            if bits is not None:
                self.bits = cython.cast(cython.p_const_uchar, _memory(bits, 1))
        else:
            self.ends = _memory(ends, 4)
            self.data = bytes(_memory(data, 1))
            self.bits = bits
        for row in range(self.count):
            if self.ends[row] > self.ends[row + 1]:
                raise ValueError(f"row {row} of a column ends before it begins")

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    @cython.nogil
    def size(self, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """How long a value is; -1 for null."""
        bit = self.first_bit + row
        if self.has_nulls and not self.bits[bit >> 3] >> (bit & 7) & 1:
            return -1
        return self.ends[row + 1] - self.ends[row]

    @cython.cfunc
    def value(self, row: cython.Py_ssize_t) -> object:
        """The bytes of a row, or None."""
        if self.size(row) < 0:
            return None
        return self.data[self.ends[row] : self.ends[row + 1]]


@cython.final
@cython.cclass
class RecordSource:
    """Records in columns, to be encoded. A column that is None is null in every row.

    `headers` are encoded already: each value is the count and the headers as a record ends in them.
    """

    keys: BinarySource | None
    values: BinarySource | None
    headers: BinarySource | None
    timestamps: cython.p_const_longlong
    count: cython.Py_ssize_t
    memory: object

    def __init__(
        self,
        timestamps: memoryview,
        keys: BinarySource | None,
        values: BinarySource | None,
        headers: BinarySource | None,
    ) -> None:
        self.keys = keys
        self.values = values
        self.headers = headers
        self.memory = timestamps
        self.count = len(timestamps)
        if cython.compiled:
            self.timestamps = cython.cast(cython.p_const_longlong, _memory(timestamps, 8))
        else:
            self.timestamps = _memory(timestamps, 8)
        column: BinarySource | None
        for column in (keys, values, headers):
            if column is not None and column.count != self.count:
                raise ValueError("the columns have different lengths")
        if headers is not None and headers.has_nulls:
            raise ValueError("encoded headers are not null")

    def encode(
        self, first: int, limit_bytes: int, prefix_bytes: int = 0, spare: bytearray | None = None
    ) -> tuple[bytearray, int]:
        """The payload, after some zeros, of the rows [first, end) that fit in the limit, at least
        one of them; and that end. A bytearray that nobody needs any more is used again.
        """
        start: cython.Py_ssize_t = first
        limit: cython.Py_ssize_t = limit_bytes
        prefix: cython.Py_ssize_t = prefix_bytes
        if not 0 <= start < self.count:
            raise ValueError(f"there is no row {first} among {self.count}")
        if not cython.compiled:
            return self._joined(start, limit, prefix)
        size: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t = start
        body: cython.Py_ssize_t
        with cython.nogil:
            while end < self.count:
                body = self._body_bytes(start, end)
                body += _number_bytes(body << 1)
                if end > start and body > limit - size:
                    break
                size += body
                end += 1
        payload = _used_again(spare, prefix, size)
        target: cython.p_uchar = payload
        with cython.nogil:
            self._write(target, prefix, start, end)
        return payload, end

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _write(
        self,
        target: cython.p_uchar,
        position: cython.Py_ssize_t,
        start: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
    ) -> cython.void:
        """Encode the rows [start, end) where there is room for them."""
        base = self.timestamps[start]
        length: cython.Py_ssize_t
        row: cython.Py_ssize_t
        for row in range(start, end):
            position = _put(target, position, self._body_bytes(start, row) << 1)
            position = _put(target, position, 0)
            position = _put(target, position, _delta(self.timestamps[row], base))
            position = _put(target, position, (row - start) << 1)
            position = _put_value(target, position, self.keys, row)
            position = _put_value(target, position, self.values, row)
            if self.headers is None:
                position = _put(target, position, 0)
            else:
                length = self.headers.size(row)
                memcpy(target + position, self.headers.data + self.headers.ends[row], length)
                position += length

    def max_timestamp(self, first: int, end: int) -> int:
        """The greatest timestamp of rows [first, end)."""
        if not 0 <= first < end <= self.count:
            raise ValueError(f"there are no rows from {first} to {end} among {self.count}")
        row: cython.Py_ssize_t
        greatest = self.timestamps[first]
        for row in range(first, end):
            greatest = max(greatest, self.timestamps[row])
        return greatest

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    @cython.nogil
    def _body_bytes(self, start: cython.Py_ssize_t, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """What a row's record takes after its length, in a batch that begins with row `start`."""
        return _body_bytes(
            _delta(self.timestamps[row], self.timestamps[start]),
            row - start,
            -1 if self.keys is None else self.keys.size(row),
            -1 if self.values is None else self.values.size(row),
            1 if self.headers is None else self.headers.size(row),
        )

    @cython.cfunc
    def _joined(
        self, start: cython.Py_ssize_t, limit: cython.Py_ssize_t, prefix_bytes: cython.Py_ssize_t
    ) -> tuple[bytearray, int]:
        """What encode gives, in the way that Python does it fastest."""
        parts = [bytes(prefix_bytes)]
        row = start
        base = self.timestamps[start]
        while row < self.count:
            key = self.keys.value(row) if self.keys is not None else None
            value = self.values.value(row) if self.values is not None else None
            record = encode_record(self.timestamps[row] - base, row - start, key, value)
            if self.headers is not None:
                record = record[: len(record) - 1] + self.headers.value(row)
            record = with_length(record)
            limit -= len(record)
            if limit < 0 and row > start:
                break
            parts.append(record)
            row += 1
        return bytearray().join(parts), row


def header_sections(counts: memoryview, keys: BinarySource, values: BinarySource) -> list[bytes]:
    """How each record ends that has headers [counts[row], counts[row + 1]) of these columns."""
    rows: cython.Py_ssize_t = len(counts) - 1
    row: cython.Py_ssize_t
    if keys.count != values.count:
        raise ValueError("the headers have more keys than values, or fewer")
    sections: list[bytes] = []
    for row in range(rows):
        first = counts[row]
        end = counts[row + 1]
        if not 0 <= first <= end <= keys.count:
            raise ValueError(f"the headers of row {row} lie outside their columns")
        section = _NO_HEADERS
        if first < end:
            headers = [(_text(keys.value(at)), values.value(at)) for at in range(first, end)]
            section = encode_headers(headers)
        sections.append(section)
    return sections


@cython.cfunc
def _text(key: Any) -> str:
    if key is None:
        raise InvalidRecord("a header without a key")
    return key.decode("utf-8", "replace")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _put_value(
    target: cython.p_uchar,
    position: cython.Py_ssize_t,
    column: BinarySource | None,
    row: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Write a column's value with its length."""
    if column is None:
        target[position] = 1
        return position + 1
    return _put_nullable(target, position, column.data + column.ends[row], column.size(row))


# --- where records of a key go --------------------------------------------------------------------


@cython.cfunc
@cython.exceptval(check=False)
def _murmur2(
    data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.ulonglong:
    """The 32-bit murmur2 hash of data[position:end] with the seed of Kafka's clients."""
    state: cython.ulonglong = _MURMUR_SEED ^ (end - position)
    word: cython.ulonglong
    left: cython.Py_ssize_t = end - position
    while left >= 4:
        word = data[position + 3]
        word = word << 8 | data[position + 2]
        word = word << 8 | data[position + 1]
        word = word << 8 | data[position]
        word = (word * _MURMUR_MIX) & _32_BITS
        word = ((word ^ word >> 24) * _MURMUR_MIX) & _32_BITS
        state = ((state * _MURMUR_MIX) & _32_BITS) ^ word
        position += 4
        left -= 4
    if left > 0:
        word = 0
        while left > 0:
            left -= 1
            word = word << 8 | data[position + left]
        state = ((state ^ word) * _MURMUR_MIX) & _32_BITS
    state = ((state ^ state >> 13) * _MURMUR_MIX) & _32_BITS
    return state ^ state >> 15


@cython.cfunc
def _int32s(view: memoryview) -> cython.p_int:
    if cython.compiled:
        return cython.cast(cython.p_int, _memory(view, 4))
    return _memory(view, 4)


def place_keys(keys: BinarySource, partition_count: int) -> memoryview:
    """For each row the partition to which every client of Kafka's sends its key; -1 for null."""
    if partition_count < 1:
        raise ValueError("a topic has a partition at least")
    partitions: cython.ulonglong = partition_count
    row: cython.Py_ssize_t
    view = memoryview(array("i", bytes(4 * keys.count)))
    place = _int32s(view)
    for row in range(keys.count):
        if keys.size(row) < 0:
            place[row] = -1
        else:
            hashed = _murmur2(keys.data, keys.ends[row], keys.ends[row + 1])
            place[row] = (hashed & 0x7FFFFFFF) % partitions
    return view


def hash_of_key(key: bytes) -> int:
    """The number by which every client of Kafka's chooses the partition of a key."""
    return _murmur2(_start(key), 0, len(key)) & 0x7FFFFFFF


@cython.cfunc
@cython.exceptval(check=False)
def _product(one: cython.ulonglong, other: cython.ulonglong) -> cython.ulonglong:
    """Of two polynomials over two elements, modulo that of CRC-32C."""
    product: cython.ulonglong = 0
    bit: cython.ulonglong = 0x80000000
    while bit:
        if one & bit:
            product ^= other
        bit >>= 1
        other = (other >> 1) ^ _CASTAGNOLI if other & 1 else other >> 1
    return product


def joined_checksum(first: int, second: int, second_bytes: int) -> int:
    """The CRC-32C of bytes whose beginning has the first checksum and whose rest has the second."""
    moved: cython.ulonglong = first
    power: cython.ulonglong = 0x00800000  # x to the 8th: one byte
    left: cython.ulonglong = second_bytes
    while left:
        if left & 1:
            moved = _product(power, moved)
        power = _product(power, power)
        left >>= 1
    return moved ^ second
