"""Messages of the formats before version 2."""

import struct
import zlib

import pytest

from ottla.errors import CorruptBatch, InvalidRecord, UnsupportedCompression
from ottla.records.compression import Compression, compress
from ottla.records.message_set import (
    LegacyMessage,
    compression_in,
    encode_message,
    encode_wrapped,
    read_messages,
)

OLD_CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4]


def some_messages(magic: int, *offsets: int) -> list[LegacyMessage]:
    timestamps = (1_000 + offset if magic else -1 for offset in offsets)
    return [
        LegacyMessage(offset, magic, b"k%d" % offset, b"v" * offset, timestamp)
        for offset, timestamp in zip(offsets, timestamps, strict=True)
    ]


def read(data: bytes, **options: int) -> list[LegacyMessage]:
    return list(read_messages(memoryview(data), **options))  # type: ignore[arg-type]


def a_message(magic: int, attributes: int, body: bytes, offset: int = 0) -> bytes:
    """Any message at all, with a right checksum and size."""
    covered = struct.pack(">bb", magic, attributes) + body
    return struct.pack(">qiI", offset, len(covered) + 4, zlib.crc32(covered)) + covered


def test_format_0_is_laid_out_as_its_definition_says() -> None:
    encoded = encode_message(LegacyMessage(5, 0, b"k", None))
    covered = bytes.fromhex("00" + "00" + "00000001" + "6b" + "ffffffff")
    crc = zlib.crc32(covered).to_bytes(4, "big")
    assert encoded == bytes.fromhex("0000000000000005" + "0000000f") + crc + covered


def test_format_1_adds_a_timestamp_and_its_type() -> None:
    message = LegacyMessage(5, 1, None, b"v", 0x0102, is_append_time=True)
    covered = bytes.fromhex("01" + "08" + "0000000000000102" + "ffffffff" + "00000001" + "76")
    assert encode_message(message)[16:] == covered
    assert read(encode_message(message)) == [message]


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_come_back(magic: int) -> None:
    messages = [
        *some_messages(magic, 0, 5, 300),
        LegacyMessage(301, magic, None, None),
        LegacyMessage(302, magic, b"", b""),
    ]
    assert read(b"".join(map(encode_message, messages))) == messages


@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_wrapped_messages_come_back_with_their_own_offsets(magic: int, codec: Compression) -> None:
    messages = some_messages(magic, 10, 11, 15)
    wrapped = encode_wrapped(messages, codec)
    assert struct.unpack_from(">q", wrapped) == (15,)
    assert wrapped[17] == codec
    assert compression_in(memoryview(wrapped)) is codec
    assert read(wrapped) == messages


@pytest.mark.parametrize(("magic", "inner_offsets"), [(0, [10, 11, 15]), (1, [0, 1, 5])])
def test_offsets_inside_are_absolute_in_format_0_and_relative_in_format_1(
    magic: int, inner_offsets: list[int]
) -> None:
    wrapped = encode_wrapped(some_messages(magic, 10, 11, 15), Compression.GZIP)
    value = wrapped[26 + 8 * magic :]
    inner = zlib.decompress(value, 31)
    found = []
    while inner:
        offset, size = struct.unpack_from(">qi", inner)
        found.append(offset)
        inner = inner[12 + size :]
    assert found == inner_offsets


def test_a_wrapper_has_the_newest_timestamp_and_gives_append_time_to_all() -> None:
    messages = [
        LegacyMessage(0, 1, None, b"", 50),
        LegacyMessage(1, 1, None, b"", 70),
        LegacyMessage(2, 1, None, b"", 60),
    ]
    wrapped = bytearray(encode_wrapped(messages, Compression.GZIP))
    assert struct.unpack_from(">q", wrapped, 18) == (70,)
    wrapped[17] |= 0x08
    struct.pack_into(">I", wrapped, 12, zlib.crc32(wrapped[16:]))
    assert [(m.timestamp, m.is_append_time) for m in read(bytes(wrapped))] == [(70, True)] * 3


def test_lz4_in_format_0_has_the_checksum_its_clients_expect() -> None:
    old, new = (
        encode_wrapped(some_messages(magic, 1, 2), Compression.LZ4)[26 + 8 * magic :]
        for magic in (0, 1)
    )
    assert old[:6] == new[:6]
    assert old[6] != new[6]


@pytest.mark.parametrize("magic", [0, 1])
def test_every_flipped_bit_is_noticed(magic: int) -> None:
    original = encode_message(some_messages(magic, 3)[0])
    for position in range(8, len(original)):
        damaged = bytearray(original)
        damaged[position] ^= 1
        with pytest.raises((CorruptBatch, InvalidRecord)):
            read(bytes(damaged))


def test_a_torn_tail_is_refused_unless_it_may_be_left_out() -> None:
    first, second = map(encode_message, some_messages(1, 1, 2))
    whole = first + second
    for size in range(len(first) + 1, len(whole)):
        with pytest.raises(CorruptBatch):
            read(whole[:size])
        assert len(read(whole[:size], ignore_torn_tail=True)) == 1


@pytest.mark.parametrize(
    "message",
    [
        a_message(0, 0, struct.pack(">ii", -2, -1)),
        a_message(0, 0, struct.pack(">ii", 5, -1)),
        a_message(0, 0, struct.pack(">ii", -1, -1) + b"left over"),
        a_message(1, 0, struct.pack(">ii", -1, -1)),
        a_message(0, 1, struct.pack(">ii", -1, -1)),
        a_message(0, 1, struct.pack(">ii", -1, 3) + b"abc"),
        a_message(0, 1, struct.pack(">ii", -1, 20) + compress(Compression.GZIP, b"")),
    ],
    ids=["key -2", "key too long", "left over", "short", "no value", "not gzip", "empty"],
)
def test_an_intact_message_that_makes_no_sense_is_invalid(message: bytes) -> None:
    with pytest.raises(InvalidRecord):
        read(message)


@pytest.mark.parametrize("magic", [2, 3, -1])
def test_other_magics_are_corrupt(magic: int) -> None:
    with pytest.raises(CorruptBatch):
        read(a_message(magic, 0, struct.pack(">ii", -1, -1)))


@pytest.mark.parametrize("codec", [4, 5, 6, 7])
def test_codecs_the_old_formats_do_not_have_are_refused(codec: int) -> None:
    with pytest.raises(UnsupportedCompression):
        read(a_message(0, codec, struct.pack(">iib", -1, 1, 0)))
    with pytest.raises(UnsupportedCompression):
        encode_wrapped(some_messages(1, 1), Compression.ZSTD)


def wrapping(content: bytes, magic: int = 1) -> bytes:
    value = compress(Compression.GZIP, content)
    timestamp = struct.pack(">q", 0) if magic else b""
    return a_message(magic, 1, timestamp + struct.pack(">ii", -1, len(value)) + value)


def test_compression_does_not_nest() -> None:
    with pytest.raises(InvalidRecord):
        read(wrapping(encode_wrapped(some_messages(1, 1, 2), Compression.GZIP)))


def test_a_wrapper_holds_its_own_format_only() -> None:
    with pytest.raises(InvalidRecord):
        read(wrapping(encode_message(some_messages(0, 1)[0])))


def test_a_set_of_wrappers_shares_one_limit() -> None:
    wrapped = encode_wrapped([LegacyMessage(0, 1, None, bytes(60_000))], Compression.GZIP)
    assert len(read(wrapped + wrapped, limit_bytes=121_000)) == 2
    with pytest.raises(InvalidRecord, match="expands"):
        read(wrapped + wrapped, limit_bytes=119_000)


def test_an_uncompressed_set_has_no_codec() -> None:
    assert compression_in(memoryview(b"".join(map(encode_message, some_messages(1, 1, 2))))) == 0
    assert compression_in(memoryview(b"")) == 0
