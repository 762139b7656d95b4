"""The header of an lz4 frame, whose checksum byte the first Kafka clients computed wrongly.

A frame begins: magic (4 bytes), descriptor (2 to 14 bytes), header checksum (1 byte): the second
byte of the xxHash32 of the descriptor. Clients of message format 0 hashed the magic as well, and
their brokers and consumers expect it so. Does not know about blocks or what they hold.
"""

from __future__ import annotations

from typing import Final, TypeAlias

Data: TypeAlias = bytes | bytearray | memoryview

LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_FLAGS_POSITION: Final = 4
_HAS_CONTENT_SIZE: Final = 0x08
_HAS_DICTIONARY_ID: Final = 0x01

_WORD: Final = 0xFFFFFFFF
_PRIME_1: Final = 0x9E3779B1
_PRIME_2: Final = 0x85EBCA77
_PRIME_3: Final = 0xC2B2AE3D
_PRIME_4: Final = 0x27D4EB2F
_PRIME_5: Final = 0x165667B1
_STRIPE_BYTES: Final = 16


def with_right_checksum(frame: Data) -> Data:
    """The frame with the checksum the lz4 format asks for; itself if it is right already."""
    position = _checksum_position(frame)
    if position is None:
        return frame
    checksum = _checksum(bytes(frame[_FLAGS_POSITION:position]))
    if frame[position] == checksum:
        return frame
    return _patched(frame, position, checksum)


def with_old_checksum(frame: Data) -> Data:
    """The frame with the checksum that clients of message format 0 write and expect."""
    position = _checksum_position(frame)
    if position is None:
        return frame
    return _patched(frame, position, _checksum(bytes(frame[:position])))


def _checksum_position(frame: Data) -> int | None:
    """Where the checksum stands, or None if this cannot be an lz4 frame."""
    if len(frame) < 7 or frame[:4] != LZ4_MAGIC:
        return None
    flags = frame[_FLAGS_POSITION]
    position = _FLAGS_POSITION + 2
    if flags & _HAS_CONTENT_SIZE:
        position += 8
    if flags & _HAS_DICTIONARY_ID:
        position += 4
    return position if position < len(frame) else None


def _patched(frame: Data, position: int, checksum: int) -> bytes:
    patched = bytearray(frame)
    patched[position] = checksum
    return bytes(patched)


def _checksum(header: bytes) -> int:
    return xxhash32(header) >> 8 & 0xFF


def xxhash32(data: bytes) -> int:
    """xxHash32 with seed 0. Plain and slow: meant for the handful of bytes of a header."""
    position = 0
    if len(data) >= _STRIPE_BYTES:
        lanes = [_PRIME_1 + _PRIME_2 & _WORD, _PRIME_2, 0, -_PRIME_1 & _WORD]
        while position + _STRIPE_BYTES <= len(data):
            for lane in range(4):
                word = int.from_bytes(data[position : position + 4], "little")
                mixed = lanes[lane] + word * _PRIME_2 & _WORD
                lanes[lane] = _rotated(mixed, 13) * _PRIME_1 & _WORD
                position += 4
        value = sum(_rotated(lanes[lane], (1, 7, 12, 18)[lane]) for lane in range(4))
    else:
        value = _PRIME_5
    value = value + len(data) & _WORD
    while position + 4 <= len(data):
        word = int.from_bytes(data[position : position + 4], "little")
        value = _rotated(value + word * _PRIME_3 & _WORD, 17) * _PRIME_4 & _WORD
        position += 4
    for byte in data[position:]:
        value = _rotated(value + byte * _PRIME_5 & _WORD, 11) * _PRIME_1 & _WORD
    value = (value ^ value >> 15) * _PRIME_2 & _WORD
    value = (value ^ value >> 13) * _PRIME_3 & _WORD
    return value ^ value >> 16


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _WORD
