"""Columns of keys, values and timestamps to the payload of a record batch, in one pass.

A record at a time costs a call each; a whole batch in one loop costs none. Records with headers
are few, and take the general way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ottla.records.record import Headers, encode_record, varint, with_length

_SMALL_COUNT: Final = 4096
_SMALL: Final = tuple(varint(number) for number in range(_SMALL_COUNT))
_NULL_KEY: Final = b"\x01"
_EMPTY: Final = b""
_NO_HEADERS: Final = b"\0"


def encode_payload(
    timestamps: Sequence[int],
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    headers: Mapping[int, Headers],
) -> bytes:
    """The records of a batch, one after the other; timestamps count from the first."""
    small, small_count = _SMALL, _SMALL_COUNT
    parts: list[bytes] = []
    base = timestamps[0]
    last_timestamp = base
    stamp = b"\0\0"  # attributes, of which there are none, and the timestamp's distance
    delta = 0
    for timestamp, key, value in zip(timestamps, keys, values, strict=True):
        if headers and delta in headers:
            body = encode_record(timestamp - base, delta, key, value, headers[delta])
            parts.append(with_length(body))
            delta += 1
            continue
        if timestamp != last_timestamp:
            last_timestamp = timestamp
            stamp = b"\0" + varint(timestamp - base)
        place = small[delta] if delta < small_count else varint(delta)
        size = len(stamp) + len(place) + 1
        if key is None:
            key_size, key = _NULL_KEY, _EMPTY
            size += 1
        else:
            key_bytes = len(key)
            key_size = small[key_bytes] if key_bytes < small_count else varint(key_bytes)
            size += len(key_size) + key_bytes
        if value is None:
            value_size, value = _NULL_KEY, _EMPTY
            size += 1
        else:
            value_bytes = len(value)
            value_size = small[value_bytes] if value_bytes < small_count else varint(value_bytes)
            size += len(value_size) + value_bytes
        parts += (
            small[size] if size < small_count else varint(size),
            stamp,
            place,
            key_size,
            key,
            value_size,
            value,
            _NO_HEADERS,
        )
        delta += 1
    return b"".join(parts)
