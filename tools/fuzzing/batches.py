"""Record batches that lie: their checksum is right, and what they say of themselves is not."""

from __future__ import annotations

from random import Random
from struct import pack, pack_into

import cramjam
from crc32c import crc32c

from ottla.records.builder import BatchBuilder

BOMB_BYTES = 100 << 20
CODECS = 5
ZSTD = 4
FIELDS = {  # position and how it is written
    "base offset": (0, ">q"),
    "length": (8, ">i"),
    "leader epoch": (12, ">i"),
    "magic": (16, ">b"),
    "attributes": (21, ">h"),
    "last offset delta": (23, ">i"),
    "base timestamp": (27, ">q"),
    "max timestamp": (35, ">q"),
    "producer id": (43, ">q"),
    "producer epoch": (51, ">h"),
    "base sequence": (53, ">i"),
    "count": (57, ">i"),
}
HEADER_BYTES = 61


def lying_batch(random: Random) -> bytes:
    """A batch in which one or two fields of the header, or bytes of its records, are wrong."""
    data = bytearray(_batch(random.randint(1, 5)))
    for _ in range(random.randint(1, 2)):
        if random.random() < 0.3:
            data[random.randrange(HEADER_BYTES, len(data))] = random.randrange(256)
            continue
        position, code = FIELDS[random.choice(list(FIELDS))]
        bits = {">b": 7, ">h": 15, ">i": 31, ">q": 63}[code]
        top = (1 << bits) - 1
        pack_into(code, data, position, random.choice((-1, 0, 1, CODECS, 7, top, -top - 1)))
    return _sealed(data)


def bomb() -> bytes:
    """A few KB of zstd that are 100 MiB, as one record."""
    size = BOMB_BYTES
    inside = b"\0\0\0\1" + _varint(size) + bytes(size) + b"\0"
    packed = bytes(cramjam.zstd.compress(_varint(len(inside)) + inside))
    data = bytearray(_batch(1)[:HEADER_BYTES]) + packed
    pack_into(">i", data, 8, len(data) - 12)
    pack_into(">h", data, 21, ZSTD)
    return _sealed(data)


def produce_body(topic: str, records: bytes) -> bytes:
    """Produce, version 8, acks=1."""
    name = topic.encode()
    partition = pack(">iii", 1, 0, len(records)) + records
    return pack(">hhiih", -1, 1, 5_000, 1, len(name)) + name + partition


def _batch(count: int) -> bytes:
    builder = BatchBuilder()
    for number in range(count):
        builder.append(1_700_000_000_000, b"key", b"value %d" % number)
    return bytes(builder.build())


def _sealed(data: bytearray) -> bytes:
    pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))
    return bytes(data)


def _varint(value: int) -> bytes:
    value = value << 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
