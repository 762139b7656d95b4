"""Which partition of an internal topic a group or transactional id belongs to."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_BITS_32: Final = 0xFFFFFFFF
_SIGN_BIT: Final = 0x80000000
_KEPT_MAX: Final = 8192
_KEPT_LENGTH_MAX: Final = 100
"""Longer keys are not remembered, so that no client fills the memory with them."""


def java_hash(text: str) -> int:
    """Java's String.hashCode: over UTF-16 code units, in 32 bits with a sign."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & _BITS_32
    return value - 2 * _SIGN_BIT if value & _SIGN_BIT else value


def partition_of(key: str, partition_count: int) -> int:
    """Where the original puts it too: the hash without its sign, but zero for the smallest."""
    value = _known_hash(key) if len(key) <= _KEPT_LENGTH_MAX else java_hash(key)
    return (0 if value == -_SIGN_BIT else abs(value)) % partition_count


_known_hash = lru_cache(_KEPT_MAX)(java_hash)
