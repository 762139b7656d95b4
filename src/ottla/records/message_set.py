"""Messages of the old formats, magic 0 and 1, and sets of them.

A message: offset int64, size int32 of the rest, CRC32 of what follows it, magic, attributes (codec
in bits 0-2, in format 1 the timestamp's type in bit 3), in format 1 a timestamp int64, key and
value, each behind an int32 length where -1 means null.

Compression wraps: the value of one message is a compressed set of others, with the offset of the
last of them. Inside, format 0 keeps offsets as they are; format 1 counts from the first message.
Does not know about version 2 batches.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from ottla.errors import CorruptBatch, InvalidRecord, UnsupportedCompression
from ottla.model.ids import NO_TIMESTAMP
from ottla.records.compression import (
    COMPRESSION_BITS,
    DECOMPRESSED_BYTES_MAX,
    Compression,
    compress,
    compression_of,
    decompress,
)
from ottla.records.lz4_header import with_old_checksum

LOG_APPEND_TIME_BIT: Final = 0x08
_PREFIX: Final = struct.Struct(">qi")
_CRC: Final = struct.Struct(">I")
_KIND: Final = struct.Struct(">bb")
_TIMESTAMP: Final = struct.Struct(">q")
_INT32: Final = struct.Struct(">i")
_CRC_BYTES: Final = 4
_ATTRIBUTES_POSITION: Final = 17
_MAGIC_MAX: Final = 1
_BODY_BYTES_MIN: Final = 14
"""Checksum, magic, attributes and the two lengths of a message of format 0."""


class LegacyMessage(msgspec.Struct, frozen=True, gc=False):
    """One message that wraps no others."""

    offset: int
    magic: int
    key: bytes | None
    value: bytes | None
    timestamp: int = NO_TIMESTAMP
    is_append_time: bool = False
    """Is the timestamp the broker's?"""


class _Entry(msgspec.Struct, frozen=True, gc=False):
    """One message as it stands in a set; its value may be others, compressed."""

    message: LegacyMessage
    codec: Compression


def read_messages(
    view: memoryview, *, limit_bytes: int = DECOMPRESSED_BYTES_MAX, ignore_torn_tail: bool = False
) -> Iterator[LegacyMessage]:
    """Every message of a set, wrapped ones too, each with its own offset and checked checksum."""
    for entry in _read_entries(view, ignore_torn_tail=ignore_torn_tail):
        if entry.codec is Compression.NONE:
            yield entry.message
        else:
            content = _unwrapped(entry, limit_bytes)
            limit_bytes -= len(content)
            yield from _read_wrapped(entry.message, memoryview(content))


def compression_in(view: memoryview) -> Compression:
    """The codec of the first message that wraps others, or none. Checks nothing else."""
    position = 0
    while position + _ATTRIBUTES_POSITION < len(view):
        if view[position + _ATTRIBUTES_POSITION] & COMPRESSION_BITS:
            return compression_of(view[position + _ATTRIBUTES_POSITION])
        _, size = _PREFIX.unpack_from(view, position)
        position += _PREFIX.size + max(size, _BODY_BYTES_MIN)
    return Compression.NONE


def encode_message(message: LegacyMessage, codec: Compression = Compression.NONE) -> bytes:
    """One message, as a member of a set."""
    attributes = codec | (LOG_APPEND_TIME_BIT if message.is_append_time and message.magic else 0)
    key, value = message.key, message.value
    try:
        body = b"".join(
            (
                _KIND.pack(message.magic, attributes),
                _TIMESTAMP.pack(message.timestamp) if message.magic else b"",
                _INT32.pack(-1 if key is None else len(key)),
                key or b"",
                _INT32.pack(-1 if value is None else len(value)),
                value or b"",
            )
        )
        prefix = _PREFIX.pack(message.offset, len(body) + _CRC_BYTES)
    except struct.error:
        raise InvalidRecord("an offset or a timestamp is out of range") from None
    return b"".join((prefix, _CRC.pack(zlib.crc32(body)), body))


def encode_wrapped(messages: Sequence[LegacyMessage], codec: Compression) -> bytes:
    """One message that holds all of `messages`, which must be of one format and in order."""
    _refuse_zstd(codec)
    first, last = messages[0], messages[-1]
    offset_base = first.offset if last.magic else 0
    content = b"".join(
        encode_message(msgspec.structs.replace(message, offset=message.offset - offset_base))
        for message in messages
    )
    compressed = compress(codec, content)
    if codec is Compression.LZ4 and last.magic == 0:
        compressed = bytes(with_old_checksum(compressed))
    wrapper = LegacyMessage(
        offset=last.offset,
        magic=last.magic,
        key=None,
        value=compressed,
        timestamp=max(message.timestamp for message in messages),
        is_append_time=last.is_append_time,
    )
    return encode_message(wrapper, codec)


def _read_entries(view: memoryview, *, ignore_torn_tail: bool = False) -> Iterator[_Entry]:
    position = 0
    end = len(view)
    while position < end:
        if end - position >= _PREFIX.size:
            offset, size = _PREFIX.unpack_from(view, position)
            if size < _BODY_BYTES_MIN:
                raise CorruptBatch(f"a message of {size} bytes is shorter than its header")
            body = position + _PREFIX.size
            if size <= end - body:
                yield _read_entry(offset, view[body : body + size])
                position = body + size
                continue
        if ignore_torn_tail:
            return
        raise CorruptBatch(f"the last {end - position} bytes are a part of a message")


def _read_entry(offset: int, body: memoryview) -> _Entry:
    magic, attributes = _KIND.unpack_from(body, _CRC_BYTES)
    if not 0 <= magic <= _MAGIC_MAX:
        raise CorruptBatch(f"{magic} is not the magic of an old message")
    if zlib.crc32(body[_CRC_BYTES:]) != _CRC.unpack_from(body)[0]:
        raise CorruptBatch(f"the checksum of the message at offset {offset} is wrong")
    position = _CRC_BYTES + _KIND.size
    timestamp = NO_TIMESTAMP
    try:
        if magic:
            (timestamp,) = _TIMESTAMP.unpack_from(body, position)
            position += _TIMESTAMP.size
        key, position = _read_bytes(body, position)
        value, position = _read_bytes(body, position)
    except struct.error:
        raise InvalidRecord("a message is too short for its parts") from None
    if position != len(body):
        raise InvalidRecord("a message's size disagrees with its parts")
    is_append_time = magic > 0 and attributes & LOG_APPEND_TIME_BIT != 0
    message = LegacyMessage(offset, magic, key, value, timestamp, is_append_time)
    return _Entry(message, compression_of(attributes))


def _read_bytes(body: memoryview, position: int) -> tuple[bytes | None, int]:
    (size,) = _INT32.unpack_from(body, position)
    position += _INT32.size
    if size == -1:
        return None, position
    if not 0 <= size <= len(body) - position:
        raise InvalidRecord(f"a key or value of {size} bytes in a message of {len(body)}")
    return bytes(body[position : position + size]), position + size


def _unwrapped(entry: _Entry, limit_bytes: int) -> bytes:
    _refuse_zstd(entry.codec)
    if entry.message.value is None:
        raise InvalidRecord("a compressed message has no value")
    content = decompress(entry.codec, entry.message.value, limit_bytes)
    if not content:
        raise InvalidRecord("a compressed message holds no messages")
    return content


def _read_wrapped(wrapper: LegacyMessage, content: memoryview) -> Iterator[LegacyMessage]:
    """The wrapped messages with the offsets and the timestamps that the wrapper gives them."""
    offset_base = 0
    if wrapper.magic:
        offset_base = wrapper.offset - _last_offset(content)
    for entry in _read_entries(content):
        message = entry.message
        if entry.codec is not Compression.NONE:
            raise InvalidRecord("a compressed message inside a compressed message")
        if message.magic != wrapper.magic:
            raise InvalidRecord("a compressed message holds messages of another format")
        yield LegacyMessage(
            message.offset + offset_base,
            message.magic,
            message.key,
            message.value,
            wrapper.timestamp if wrapper.is_append_time else message.timestamp,
            wrapper.is_append_time,
        )


def _last_offset(content: memoryview) -> int:
    """The offset of the last message, found by their sizes alone."""
    position = 0
    offset = 0
    while position + _PREFIX.size <= len(content):
        offset, size = _PREFIX.unpack_from(content, position)
        if size < 0:
            raise InvalidRecord(f"a message of {size} bytes")
        position += _PREFIX.size + size
    return offset


def _refuse_zstd(codec: Compression) -> None:
    if codec is Compression.ZSTD:
        raise UnsupportedCompression("the old message formats do not know zstd")
