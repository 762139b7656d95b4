"""The records inside a batch: lengths and deltas as zigzag varints, keys, values, headers.

Decoding reads plain `bytes`, which Python indexes and slices fastest, and spells out one-byte
varints in place: a call for each number would double the cost.
Does not know about batch headers beyond what RecordShape carries, nor about compression.

A record: length, attributes (one byte, unused), timestamp delta, offset delta, key length, key,
value length, value, header count, and per header key length, key, value length, value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import msgspec

from ottla.errors import InvalidRecord, RecordsWithoutKey

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


class Record(msgspec.Struct, frozen=True, gc=False):
    """One record, with its place in the log."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class RecordShape(msgspec.Struct, frozen=True):
    """What a batch's header says about the records in it."""

    base_offset: int
    base_timestamp: int
    append_time: int | None
    """The timestamp of every record, if the broker's clock is the one that counts."""
    record_count: int
    last_offset_delta: int


class RawRecord(msgspec.Struct, frozen=True, gc=False):
    """One record undecoded: what compaction must know, and where its bytes stand in the payload."""

    offset: int
    timestamp_delta: int
    key: bytes | None
    has_value: bool
    start: int
    body_start: int
    """After the length."""
    offset_delta_start: int
    """From here on the bytes do not depend on the batch's base timestamp."""
    end: int


_SMALL_COUNT: Final = 2048
"""Numbers below this are not encoded but looked up."""
RECORD_BYTES_MIN: Final = 7
"""A length, the attributes, two deltas, two lengths, a count: one byte each."""
_NO_ATTRIBUTES: Final = b"\0"
_NO_HEADERS: Final = b"\0"
_NULL: Final = b"\x01"
"""The length -1."""


# --- numbers --------------------------------------------------------------------------------------


def as_int64(number: int) -> int:
    """Timestamps may be any 64 bits a client chose: their sums wrap, as in Kafka's own clients."""
    return (number + 2**63) % 2**64 - 2**63


def varint(value: int) -> bytes:
    """A signed number in zigzag varint form, up to 64 bits."""
    value = as_int64(value)
    rest = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


# Those of one byte, then of two: what varint() gives, made faster, since every start pays for it.
_SMALL_VARINTS: Final = (
    *(bytes((value << 1,)) for value in range(64)),
    *(bytes((value << 1 & 0x7F | 0x80, value >> 6)) for value in range(64, _SMALL_COUNT)),
)


def _unfinished(data: bytes, position: int, first: int) -> tuple[int, int]:
    """The unsigned number whose first byte, just before `position`, says that more follow."""
    byte = data[position]
    if byte < 0x80:
        return first & 0x7F | byte << 7, position + 1
    value = first & 0x7F | (byte & 0x7F) << 7
    for shift in range(14, 70, 7):
        position += 1
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, position + 1
    raise InvalidRecord("a number of more than ten bytes")


# --- decoding -------------------------------------------------------------------------------------


def decode_records(payload: bytes, shape: RecordShape) -> Iterator[Record]:
    """Each record of a decompressed payload; InvalidRecord where that is not what it holds.

    A number n is stored as 2n, or -2n - 1 if negative: a length is half of what is stored, and an
    odd one stands for null.
    """
    base_offset = shape.base_offset
    base_timestamp = shape.base_timestamp
    append_time = shape.append_time
    position = 0
    try:
        for _ in range(_checked_count(payload, shape)):
            length = payload[position]
            position += 1
            if length > 0x7F:
                length, position = _unfinished(payload, position, length)
            end = position + (length >> 1)
            position += 1  # the attributes, of which none is in use
            timestamp = payload[position]
            position += 1
            if timestamp > 0x7F:
                timestamp, position = _unfinished(payload, position, timestamp)
            offset = payload[position]
            position += 1
            if offset > 0x7F:
                offset, position = _unfinished(payload, position, offset)
            size = payload[position]
            position += 1
            if size > 0x7F:
                size, position = _unfinished(payload, position, size)
            key: bytes | None = None
            if not size & 1:
                start = position
                position += size >> 1
                key = payload[start:position]
            size = payload[position]
            position += 1
            if size > 0x7F:
                size, position = _unfinished(payload, position, size)
            value: bytes | None = None
            if not size & 1:
                start = position
                position += size >> 1
                value = payload[start:position]
            headers: Headers = ()
            if payload[position]:
                headers, position = _decode_headers(payload, position)
            else:
                position += 1
            if position != end:
                raise _wrong_length()
            yield Record(
                base_offset + (offset >> 1 ^ -(offset & 1)),
                base_timestamp + (timestamp >> 1 ^ -(timestamp & 1))
                if append_time is None
                else append_time,
                key,
                value,
                headers,
            )
    except IndexError:
        raise _ends_early() from None
    _check_consumed(payload, position)


def _decode_headers(payload: bytes, position: int) -> tuple[Headers, int]:
    count, position = _read_length(payload, position)
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        size, position = _read_length(payload, position)
        key = payload[position : position + size].decode("utf-8", "replace")
        position += size
        stored, position = _read_unsigned(payload, position)
        value: bytes | None = None
        if not stored & 1:
            value = payload[position : position + (stored >> 1)]
            position += stored >> 1
        headers.append((key, value))
    return tuple(headers), position


def _read_unsigned(payload: bytes, position: int) -> tuple[int, int]:
    byte = payload[position]
    if byte > 0x7F:
        return _unfinished(payload, position + 1, byte)
    return byte, position + 1


def _read_length(payload: bytes, position: int) -> tuple[int, int]:
    """A length that may not be null."""
    stored, position = _read_unsigned(payload, position)
    if stored & 1:
        raise InvalidRecord("a header's key or the count of headers is negative")
    return stored >> 1, position


def _checked_count(payload: bytes, shape: RecordShape) -> int:
    if not 0 <= shape.record_count <= len(payload) // RECORD_BYTES_MIN:
        raise InvalidRecord(f"{shape.record_count} records cannot stand in {len(payload)} bytes")
    return shape.record_count


def _check_consumed(payload: bytes, position: int) -> None:
    if position != len(payload):
        raise InvalidRecord(f"{len(payload) - position} bytes are left after the last record")


def _wrong_length() -> InvalidRecord:
    return InvalidRecord("a record's length disagrees with its parts")


def _ends_early() -> InvalidRecord:
    return InvalidRecord("the records end early")


# --- without decoding -----------------------------------------------------------------------------


def scan_records(payload: bytes, shape: RecordShape) -> Iterator[RawRecord]:
    """Each record's key and extent. Values and headers are stepped over, not read."""
    base_offset = shape.base_offset
    position = 0
    try:
        for _ in range(_checked_count(payload, shape)):
            start = position
            length = payload[position]
            position += 1
            if length > 0x7F:
                length, position = _unfinished(payload, position, length)
            body_start = position
            end = position + (length >> 1)
            position += 1  # the attributes
            timestamp = payload[position]
            position += 1
            if timestamp > 0x7F:
                timestamp, position = _unfinished(payload, position, timestamp)
            offset_delta_start = position
            offset = payload[position]
            position += 1
            if offset > 0x7F:
                offset, position = _unfinished(payload, position, offset)
            size = payload[position]
            position += 1
            if size > 0x7F:
                size, position = _unfinished(payload, position, size)
            key: bytes | None = None
            if not size & 1:
                key_start = position
                position += size >> 1
                key = payload[key_start:position]
            size = payload[position]
            position += 1
            if size > 0x7F:
                size, position = _unfinished(payload, position, size)
            if position + (0 if size & 1 else size >> 1) >= end:  # a count of headers must follow
                raise _wrong_length()
            position = end
            yield RawRecord(
                base_offset + (offset >> 1 ^ -(offset & 1)),
                timestamp >> 1 ^ -(timestamp & 1),
                key,
                not size & 1,
                start,
                body_start,
                offset_delta_start,
                end,
            )
    except IndexError:
        raise _ends_early() from None
    _check_consumed(payload, position)


def check_records(payload: bytes, shape: RecordShape, *, needs_keys: bool) -> None:
    """Raise InvalidRecord unless offsets rise, none past the header's last, with keys if asked."""
    offset = shape.base_offset - 1
    without_key: list[int] = []
    for index, record in enumerate(decode_records(payload, shape)):
        if record.offset <= offset:
            raise InvalidRecord(f"offset {record.offset} follows offset {offset}")
        if needs_keys and record.key is None:
            without_key.append(index)
        offset = record.offset
    if offset > shape.base_offset + shape.last_offset_delta:
        raise InvalidRecord(f"offset {offset} is past the batch's last")
    if without_key:
        raise RecordsWithoutKey(without_key)


# --- encoding -------------------------------------------------------------------------------------


def encode_record(
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Headers = (),
) -> bytes:
    """One record without its length in front."""
    small = _SMALL_VARINTS
    key_bytes = _NULL
    if key is not None:
        size = len(key)
        key_bytes = small[size] if size < _SMALL_COUNT else varint(size)
    value_bytes = _NULL
    if value is not None:
        size = len(value)
        value_bytes = small[size] if size < _SMALL_COUNT else varint(size)
    return b"".join(
        (
            _NO_ATTRIBUTES,
            small[timestamp_delta]
            if 0 <= timestamp_delta < _SMALL_COUNT
            else varint(timestamp_delta),
            small[offset_delta] if 0 <= offset_delta < _SMALL_COUNT else varint(offset_delta),
            key_bytes,
            key or b"",
            value_bytes,
            value or b"",
            encode_headers(headers) if headers else _NO_HEADERS,
        )
    )


def with_length(record: bytes) -> bytes:
    """An encoded record as it stands in a batch."""
    size = len(record)
    return (_SMALL_VARINTS[size] if size < _SMALL_COUNT else varint(size)) + record


def encode_headers(headers: Iterable[tuple[str, bytes | None]]) -> bytes:
    """How many, and each key and value: the end of a record."""
    parts = [b""]
    count = 0
    for key, value in headers:
        key_bytes = key.encode()
        parts += (varint(len(key_bytes)), key_bytes)
        parts += (_NULL,) if value is None else (varint(len(value)), value)
        count += 1
    parts[0] = varint(count)
    return b"".join(parts)
