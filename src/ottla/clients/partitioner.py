"""Which partition the records of a key go to, exactly as Java's clients place them.

Records of one key must meet in one partition whichever client wrote them, so the hash is Java's
murmur2 with Kafka's seed, bit for bit.
"""

from __future__ import annotations

import struct
from typing import Final

_SEED: Final = 0x9747B28C
_MIX: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The 32-bit murmur2 hash of `data`, unsigned."""
    size = len(data)
    whole = size & ~3
    state = _SEED ^ size
    for (word,) in struct.iter_unpack("<I", memoryview(data)[:whole]):
        mixed = (word * _MIX) & _MASK
        mixed = ((mixed ^ (mixed >> 24)) * _MIX) & _MASK
        state = ((state * _MIX) & _MASK) ^ mixed
    if size > whole:
        state = ((state ^ int.from_bytes(data[whole:], "little")) * _MIX) & _MASK
    state = ((state ^ (state >> 13)) * _MIX) & _MASK
    return state ^ (state >> 15)


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Where every client puts records of this key."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
