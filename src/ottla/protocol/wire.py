"""The rare paths of reading and writing primitives, and the errors compiled codecs raise.

Compiled code handles one-byte varints and plain fields inline; it calls here for the rest.
"""

from __future__ import annotations

from typing import NoReturn

from ottla.errors import BadLength, TooManyElements

VARINT_SHIFT_MAX = 28
"""A varint of the protocol holds 32 bits: at most five bytes."""


TAGS_MAX = 0x7F
"""How many tagged fields one section may hold: as many as one byte can say. No message has ten."""


def read_uvarint(buffer: memoryview, position: int, first: int) -> tuple[int, int]:
    """Read on after `first`, a byte that said there is more; return the value and the position."""
    value = first & 0x7F
    shift = 7
    while shift <= VARINT_SHIFT_MAX:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise BadLength("the message", "varint", value)


def write_uvarint(out: bytearray, value: int) -> None:
    """Append `value`, which is not negative, seven bits at a time."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def read_tag(buffer: memoryview, position: int) -> tuple[int, int, int]:
    """Read one tag and its size; return tag, position of the content, and where it ends."""
    tag = buffer[position]
    position += 1
    if tag > 0x7F:
        tag, position = read_uvarint(buffer, position, tag)
    size = buffer[position]
    position += 1
    if size > 0x7F:
        size, position = read_uvarint(buffer, position, size)
    end = position + size
    if end > len(buffer):
        raise BadLength("the message", f"tag {tag}", size)
    return tag, position, end


def skip_tags(buffer: memoryview, position: int, budget: int = TAGS_MAX) -> int:
    """Pass over a tagged section that nobody here knows; return the position after it.

    `budget` is what the message may still hold after this section's tags.
    """
    count = buffer[position]
    position += 1
    if count > TAGS_MAX or budget < 0:
        raise TooManyElements("the message", "tagged fields", count)
    for _ in range(count):
        _, _, position = read_tag(buffer, position)
    return position


def fail_length(message_name: str, field_name: str, value: int) -> NoReturn:
    """A length or marker is negative where null is not allowed, or longer than the bytes left."""
    raise BadLength(message_name, field_name, value)


def fail_count(message_name: str, field_name: str, count: int) -> NoReturn:
    """A count is negative where null is not allowed, or larger than the message may hold."""
    if count < 0:
        raise BadLength(message_name, field_name, count)
    raise TooManyElements(message_name, field_name, count)
