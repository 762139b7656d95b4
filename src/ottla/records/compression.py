"""gzip, snappy, lz4 and zstd as Kafka's clients write them, with a limit on what comes out.

cramjam brings all four; lz4 is compressed by the `lz4` package where that is installed, being
several times faster. Decompression never yields more than its limit, however small the input.
Does not know what the bytes mean.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import Final, cast

import cramjam

from ottla.errors import ExpandsTooFar, InvalidRecord, UnsupportedCompression
from ottla.records import lz4_header
from ottla.records.lz4_header import Data

try:
    from lz4.frame import compress as _lz4_package_compress
except ImportError:  # the package is an extra
    _lz4_package_compress = None


class Compression(IntEnum):
    """The codec in the low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def config_name(self) -> str:
        """The name in `compression.type`."""
        return self.name.lower()


COMPRESSION_BITS: Final = 0x07
DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024
"""The most one batch may expand to. A batch past it is refused, not expanded."""

GZIP_LEVEL_DEFAULT: Final = -1
LZ4_LEVEL_DEFAULT: Final = 9
"""Kafka's number for "no level given", which it compresses in lz4's fast mode."""
ZSTD_LEVEL_DEFAULT: Final = 3

_GZIP_WINDOW_BITS: Final = 31
_FIRST_GUESS_RATIO: Final = 8
_FIRST_GUESS_BYTES_MIN: Final = 64 * 1024
_GROWTH: Final = 4

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_INT32: Final = struct.Struct(">i")
_SNAPPY_SIZE_BYTES_MAX: Final = 5
_SNAPPY_SHORT_LITERAL: Final = 3 << 2
"""The tag of a literal of four bytes."""
_MAGIC: Final = {
    Compression.GZIP: b"\x1f\x8b\x08",
    Compression.LZ4: b"\x04\x22\x4d\x18",
    Compression.ZSTD: b"\x28\xb5\x2f\xfd",
}
_RATIO_MAX: Final = {
    Compression.NONE: 1,
    Compression.GZIP: 1_032,
    Compression.SNAPPY: 22,
    Compression.LZ4: 256,
    Compression.ZSTD: 33_000,
}
"""To how many bytes each codec's format can expand one."""
_RATIO_DOUBTFUL: Final = 32
"""Records that small, and that much alike, are believed only when seen."""


def compression_of(attributes: int) -> Compression:
    """The codec a batch's or a message's attributes name."""
    try:
        return _BY_NUMBER[attributes & COMPRESSION_BITS]
    except IndexError:
        raise UnsupportedCompression(
            f"codec {attributes & COMPRESSION_BITS} is none that Kafka has"
        ) from None


def compression_named(name: str) -> Compression:
    """The codec of a setting; `uncompressed` is how `compression.type` says none."""
    try:
        return _BY_NAME[name.lower()]
    except KeyError:
        raise UnsupportedCompression(f"there is no codec named {name!r}") from None


_BY_NUMBER: Final = tuple(Compression)
_BY_NAME: Final = {codec.config_name: codec for codec in Compression} | {
    "uncompressed": Compression.NONE
}


def may_hold(codec: Compression, data: Data, content_bytes: int) -> bool:
    """Whether `data` begins as this codec's does, and could expand to so many bytes."""
    if content_bytes > len(data) * _RATIO_MAX[codec]:
        return False
    magic = _MAGIC.get(codec)
    return magic is None or bytes(data[: len(magic)]) == magic


def is_doubtful(codec: Compression, data: Data, content_bytes: int) -> bool:
    """Whether only decompressing tells if `data`, which may hold that much, is what it says.

    A block of snappy has no magic. It begins with a literal, which is longer than this unless the
    content is tiny; plain records in its place look like a literal of one byte.
    """
    if content_bytes > len(data) * _RATIO_DOUBTFUL:
        return True
    if codec is not Compression.SNAPPY or bytes(data[:8]) == _XERIAL_MAGIC:
        return False
    position = 0
    while position < _SNAPPY_SIZE_BYTES_MAX and position < len(data) and data[position] > 0x7F:
        position += 1
    tag = data[position + 1] if position + 1 < len(data) else 1
    return bool(tag & 3) or tag < _SNAPPY_SHORT_LITERAL


def compress(codec: Compression, data: Data, level: int | None = None) -> bytes:
    """`data` in the framing Kafka's clients expect of this codec."""
    if codec is Compression.NONE:
        return bytes(data)
    return _COMPRESS[codec](data, level)


def decompress(codec: Compression, data: Data, limit_bytes: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """What was compressed, or InvalidRecord if it is damaged or larger than `limit_bytes`."""
    if codec is Compression.NONE:
        return bytes(data)
    if codec is Compression.SNAPPY:
        return _decompress_snappy(data, limit_bytes)
    if codec is Compression.LZ4:
        data = lz4_header.with_right_checksum(data)
    return _decompress_growing(codec, data, limit_bytes)


def _compress_gzip(data: Data, level: int | None) -> bytes:
    return zlib.compress(data, GZIP_LEVEL_DEFAULT if level is None else level, _GZIP_WINDOW_BITS)


def _compress_snappy(data: Data, level: int | None) -> bytes:  # noqa: ARG001 (snappy has no levels)
    parts = [_XERIAL_HEADER]
    view = memoryview(data)
    for position in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = view[position : position + _XERIAL_BLOCK_BYTES]
        compressed = bytes(cramjam.snappy.compress_raw(block))
        parts.append(_INT32.pack(len(compressed)))
        parts.append(compressed)
    return b"".join(parts)


def _compress_lz4(data: Data, level: int | None) -> bytes:
    # Java's reader refuses blocks that refer to earlier blocks, hence block_linked=False.
    lz4_level = 0 if level is None or level == LZ4_LEVEL_DEFAULT else level
    if _lz4_package_compress is not None:
        return cast(
            "bytes",
            _lz4_package_compress(
                data, compression_level=lz4_level, block_linked=False, store_size=False
            ),
        )
    compressor = cramjam.lz4.Compressor(level=lz4_level, content_checksum=False, block_linked=False)
    compressor.compress(bytes(data))  # it takes nothing else
    return bytes(compressor.finish())


def _compress_zstd(data: Data, level: int | None) -> bytes:
    return bytes(cramjam.zstd.compress(data, ZSTD_LEVEL_DEFAULT if level is None else level))


_COMPRESS: Final[dict[Compression, Callable[[Data, int | None], bytes]]] = {
    Compression.GZIP: _compress_gzip,
    Compression.SNAPPY: _compress_snappy,
    Compression.LZ4: _compress_lz4,
    Compression.ZSTD: _compress_zstd,
}
_DECOMPRESS_INTO: Final[dict[Compression, Callable[[Data, bytearray], int]]] = {
    Compression.GZIP: cramjam.gzip.decompress_into,
    Compression.LZ4: cramjam.lz4.decompress_into,
    Compression.ZSTD: cramjam.zstd.decompress_into,
}


def _words_for_no_room(codec: Compression) -> str:
    """What cramjam says when the content does not fit: it has no type of its own for that."""
    try:
        _DECOMPRESS_INTO[codec](_COMPRESS[codec](b"content", None), bytearray(1))
    except cramjam.DecompressionError as error:
        return str(error)
    raise AssertionError("seven bytes fitted into one")


_NO_ROOM: Final = {codec: _words_for_no_room(codec) for codec in _DECOMPRESS_INTO}


def _decompress_growing(codec: Compression, data: Data, limit_bytes: int) -> bytes:
    """Frames need not say how large their content is: guess, and grow the room up to the limit."""
    decompress_into = _DECOMPRESS_INTO[codec]
    no_room = _NO_ROOM[codec]
    room = min(max(_FIRST_GUESS_BYTES_MIN, _FIRST_GUESS_RATIO * len(data)), limit_bytes)
    while True:
        content = bytearray(room)
        try:
            size = decompress_into(data, content)
        except cramjam.DecompressionError as error:
            if str(error) != no_room:
                raise InvalidRecord(f"the {codec.config_name} data is damaged: {error}") from None
            if room >= limit_bytes:
                raise _too_large(codec, limit_bytes) from None
            room = min(room * _GROWTH, limit_bytes)
        else:
            return bytes(memoryview(content)[:size])


def _decompress_snappy(data: Data, limit_bytes: int) -> bytes:
    if data[:8] != _XERIAL_MAGIC:
        return _decompress_snappy_block(data, limit_bytes)
    view = memoryview(data)
    parts: list[bytes] = []
    position = len(_XERIAL_HEADER)
    while position < len(view):
        if (
            bytes(view[position : position + 8]) == _XERIAL_MAGIC
        ):  # streams may be joined end to end
            position += len(_XERIAL_HEADER)
            continue
        if position + 4 > len(view):
            raise InvalidRecord("the snappy data ends inside a block's length")
        (size,) = _INT32.unpack_from(view, position)
        position += 4
        if not 0 < size <= len(view) - position:
            raise InvalidRecord(
                f"a snappy block of {size} bytes, of which {len(view) - position} are here"
            )
        parts.append(_decompress_snappy_block(view[position : position + size], limit_bytes))
        limit_bytes -= len(parts[-1])
        position += size
    return b"".join(parts)


def _decompress_snappy_block(block: Data, limit_bytes: int) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > limit_bytes:
            raise _too_large(Compression.SNAPPY, limit_bytes)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise InvalidRecord(f"the snappy data is damaged: {error}") from None


def _too_large(codec: Compression, limit_bytes: int) -> ExpandsTooFar:
    return ExpandsTooFar(f"the {codec.config_name} data expands to more than {limit_bytes} bytes")
