"""Batches whose header and records do not agree, made byte by byte: each kind of lie by its name.

Independent of ottla.records, so that a mistake there is not made here too. All checksums are right
unless the checksum is the lie. An honest batch has two records, keyed, at the present time.
"""

import gzip
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import cramjam
from crc32c import crc32c

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CONTROL, TRANSACTIONAL, APPEND_TIME, DELETE_HORIZON = 0x20, 0x10, 0x08, 0x40
BIG = 2**31 - 1
DAY_MS = 24 * 3600 * 1000


def varint(value: int) -> bytes:
    """A zigzag varint."""
    rest, encoded = (value << 1) ^ (value >> 63), bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*encoded, rest])


@dataclass(frozen=True)
class Rec:
    """A record, each field to be lied about."""

    offset_delta: int = 0
    timestamp_delta: int = 0
    key: bytes = varint(1) + b"k"
    value: bytes = varint(20) + b"v" * 20
    headers: bytes = b"\0"
    attributes: int = 0
    length_off_by: int = 0
    length: bytes | None = None

    def encode(self) -> bytes:
        body = bytes([self.attributes]) + varint(self.timestamp_delta) + varint(self.offset_delta)
        body += self.key + self.value + self.headers
        length = varint(len(body) + self.length_off_by) if self.length is None else self.length
        return length + body


TWO = (Rec(0), Rec(1))


@dataclass(frozen=True)
class Lie:
    """A batch, each field of its header to be lied about."""

    records: tuple[Rec, ...] = TWO
    payload: Callable[[bytes], bytes] = bytes
    """What becomes of the records' bytes: compression, cutting, garbage."""
    count: int = 2
    last_delta: int = 1
    attributes: int = 0
    base_offset: int = 0
    leader_epoch: int = -1
    magic: int = 2
    length_off_by: int = 0
    length: int | None = None
    crc_off_by: int = 0
    base_timestamp_off_by: int = 0
    base_timestamp: int | None = None
    max_timestamp_off_by: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    after: bytes = field(default=b"")
    """What follows the batch in the same partition of the request."""

    def encode(self) -> bytes:
        stored = self.payload(b"".join(record.encode() for record in self.records))
        now_ms = int(time.time() * 1000)
        base_ms = now_ms + self.base_timestamp_off_by
        if self.base_timestamp is not None:
            base_ms = self.base_timestamp
        covered = struct.pack(
            ">hiqqqhii",
            self.attributes,
            self.last_delta,
            base_ms,
            base_ms + self.max_timestamp_off_by,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        )
        covered += stored
        length = len(covered) + 9 + self.length_off_by if self.length is None else self.length
        before = struct.pack(
            ">qiibI",
            self.base_offset,
            length,
            self.leader_epoch,
            self.magic,
            (crc32c(covered) + self.crc_off_by) % 2**32,
        )
        return before + covered + self.after


def squeezed(codec: int) -> Callable[[bytes], bytes]:
    """Honest compression, as Kafka's clients frame it."""
    if codec == GZIP:
        return gzip.compress
    if codec == SNAPPY:
        return lambda data: bytes(cramjam.snappy.compress_raw(data))
    if codec == LZ4:
        return _lz4
    return lambda data: bytes(cramjam.zstd.compress(data))


def _lz4(data: bytes) -> bytes:
    compressor = cramjam.lz4.Compressor(content_checksum=False, block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())


def _with_first(**lies: object) -> tuple[Rec, Rec]:
    return (replace(Rec(0), **lies), Rec(1))  # type: ignore[arg-type]


def _with_last(**lies: object) -> tuple[Rec, Rec]:
    return (Rec(0), replace(Rec(1), **lies))  # type: ignore[arg-type]


HONEST = {
    "nothing": Lie(),
    "nothing, under gzip": Lie(payload=squeezed(GZIP), attributes=GZIP),
    "nothing, under snappy": Lie(payload=squeezed(SNAPPY), attributes=SNAPPY),
    "nothing, under lz4": Lie(payload=squeezed(LZ4), attributes=LZ4),
    "nothing, under zstd": Lie(payload=squeezed(ZSTD), attributes=ZSTD),
}
OF_THE_COUNT = {
    "count 2^31 - 1, last offset delta to match": Lie(count=BIG, last_delta=BIG - 1),
    "count 3, last offset delta to match": Lie(count=3, last_delta=2),
    "count 1, last offset delta to match": Lie(count=1, last_delta=0),
    "count 0, last offset delta -1": Lie(count=0, last_delta=-1),
    "count 0, last offset delta 0, no records": Lie((), count=0, last_delta=0),
    "count -1, last offset delta -2": Lie(count=-1, last_delta=-2),
    "last offset delta 5 of two records": Lie(last_delta=5),
    "last offset delta 0 of two records": Lie(last_delta=0),
    "last offset delta -1 of two records": Lie(last_delta=-1),
    "last offset delta 2^31 - 1 of two records": Lie(last_delta=BIG),
    "count 2, no records": Lie(()),
    "gzip: count 3, last offset delta to match": Lie(
        payload=squeezed(GZIP), attributes=GZIP, count=3, last_delta=2
    ),
    "gzip: count 1, last offset delta to match": Lie(
        payload=squeezed(GZIP), attributes=GZIP, count=1, last_delta=0
    ),
    "zstd: count 2^31 - 1, last offset delta to match": Lie(
        payload=squeezed(ZSTD), attributes=ZSTD, count=BIG, last_delta=BIG - 1
    ),
}
OF_THE_SIZE = {
    "length one too small": Lie(length_off_by=-1),
    "length one too large": Lie(length_off_by=1),
    "length 0": Lie(length=0),
    "length -1": Lie(length=-1),
    "length 2^31 - 1": Lie(length=BIG),
    "garbage after the batch": Lie(after=b"garbage"),
    "an honest batch after the batch": Lie(after=Lie().encode()),
    "a batch that lies about its count after the batch": Lie(
        after=Lie(count=3, last_delta=2).encode()
    ),
}
OF_THE_HEADER = {
    "checksum": Lie(crc_off_by=1),
    "magic 3": Lie(magic=3),
    "magic 1 on format 2": Lie(magic=1),
    "magic 0 on format 2": Lie(magic=0),
    "magic -1": Lie(magic=-1),
    "base offset 5": Lie(base_offset=5),
    "base offset -1": Lie(base_offset=-1),
    "leader epoch 7": Lie(leader_epoch=7),
    "control bit": Lie(attributes=CONTROL),
    "control bit of a producer": Lie(
        attributes=CONTROL, producer_id=4000, producer_epoch=0, base_sequence=0
    ),
    "transactional bit without a producer": Lie(attributes=TRANSACTIONAL),
    "append time bit": Lie(attributes=APPEND_TIME),
    "delete horizon bit": Lie(attributes=DELETE_HORIZON),
    "unused attribute bit 7": Lie(attributes=0x80),
    "unused attribute bit 14": Lie(attributes=0x4000),
    "base timestamp two days ahead": Lie(base_timestamp_off_by=2 * DAY_MS),
    "base timestamp -1": Lie(base_timestamp=-1),
    "base timestamp -5": Lie(base_timestamp=-5),
    "maximum timestamp below the records'": Lie(max_timestamp_off_by=-1000),
    "maximum timestamp above the records'": Lie(max_timestamp_off_by=1000),
    "maximum timestamp two days ahead": Lie(max_timestamp_off_by=2 * DAY_MS),
    "producer id without a sequence": Lie(producer_id=4001, producer_epoch=0),
    "producer id without an epoch": Lie(producer_id=4002, base_sequence=0),
    "epoch and sequence without a producer id": Lie(producer_epoch=0, base_sequence=0),
    "producer id -2": Lie(producer_id=-2, producer_epoch=0, base_sequence=0),
    "sequence -2": Lie(producer_id=4003, producer_epoch=0, base_sequence=-2),
}
OF_THE_CODEC = {
    "gzip bit on plain records": Lie(attributes=GZIP),
    "snappy bit on plain records": Lie(attributes=SNAPPY),
    "lz4 bit on plain records": Lie(attributes=LZ4),
    "zstd bit on plain records": Lie(attributes=ZSTD),
    "codec 5": Lie(attributes=5),
    "codec 7": Lie(attributes=7),
    "no codec bit on gzip": Lie(payload=squeezed(GZIP)),
    "gzip bit on lz4": Lie(payload=squeezed(LZ4), attributes=GZIP),
    "gzip cut in the middle": Lie(
        payload=lambda data: gzip.compress(data)[: len(gzip.compress(data)) // 2], attributes=GZIP
    ),
    "zstd cut in the middle": Lie(payload=lambda data: squeezed(ZSTD)(data)[:-4], attributes=ZSTD),
    "gzip with a flipped byte in its middle": Lie(
        payload=lambda data: _flipped(gzip.compress(data)), attributes=GZIP
    ),
    "gzip: garbage behind the records": Lie(
        payload=lambda data: gzip.compress(data + b"garbage"), attributes=GZIP
    ),
    "gzip: garbage behind the gzip": Lie(
        payload=lambda data: gzip.compress(data) + b"garbage", attributes=GZIP
    ),
    "gzip: a wrong record length": Lie(
        _with_first(length_off_by=1), payload=squeezed(GZIP), attributes=GZIP
    ),
}
OF_A_RECORD = {
    "record length one too large": Lie(_with_first(length_off_by=1)),
    "record length one too small": Lie(_with_first(length_off_by=-1)),
    "last record's length one too large": Lie(_with_last(length_off_by=1)),
    "last record's length one too small": Lie(_with_last(length_off_by=-1)),
    "record length -1": Lie(_with_first(length=varint(-1))),
    "record length 0": Lie(_with_first(length=varint(0))),
    "record length 2^31 - 1": Lie(_with_first(length=varint(BIG))),
    "record length as a number of eleven bytes": Lie(_with_first(length=b"\x80" * 10 + b"\x01")),
    "record length in more bytes than needed": Lie(_with_first(length=b"\xb6\x80\x00")),
    "record attributes set": Lie(_with_first(attributes=1)),
    "offset deltas 0, 0": Lie(_with_last(offset_delta=0)),
    "offset deltas 0, 2": Lie(_with_last(offset_delta=2)),
    "offset deltas 1, 0": Lie((Rec(1), Rec(0))),
    "offset deltas 1, 2": Lie((Rec(1), Rec(2))),
    "offset deltas -1, 0": Lie((Rec(-1), Rec(0))),
    "timestamp delta ten years ahead": Lie(_with_last(timestamp_delta=3650 * DAY_MS)),
    "timestamp delta past the maximum timestamp": Lie(_with_last(timestamp_delta=1000)),
    "key length past the record": Lie(_with_first(key=varint(100) + b"k")),
    "key length -2": Lie(_with_first(key=varint(-2))),
    "value length past the record": Lie(_with_first(value=varint(100) + b"v" * 20)),
    "value length -2": Lie(_with_first(value=varint(-2))),
    "value length one too small": Lie(_with_first(value=varint(19) + b"v" * 20)),
    "header count -1": Lie(_with_first(headers=varint(-1))),
    "header count 2^31 - 1": Lie(_with_first(headers=varint(BIG))),
    "header count missing": Lie(_with_first(headers=b"")),
    "header key null": Lie(_with_first(headers=varint(1) + varint(-1) + varint(-1))),
    "header key not UTF-8": Lie(
        _with_first(headers=varint(1) + varint(2) + b"\xff\xfe" + varint(-1))
    ),
    "header value length -2": Lie(_with_first(headers=varint(1) + varint(1) + b"h" + varint(-2))),
    "header value past the record": Lie(
        _with_first(headers=varint(1) + varint(1) + b"h" + varint(100))
    ),
    "garbage behind the last record": Lie(payload=lambda data: data + b"garbage"),
    "a third record behind the last": Lie(payload=lambda data: data + Rec(2).encode()),
    "last record cut": Lie(payload=lambda data: data[:-5]),
}
LIES = {**OF_THE_COUNT, **OF_THE_SIZE, **OF_THE_HEADER, **OF_THE_CODEC, **OF_A_RECORD}


def _flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]
