"""The four codecs and their limits."""

import gzip
import struct

import cramjam
import lz4.frame
import pytest

from ottla.errors import InvalidRecord, UnsupportedCompression
from ottla.records import compression
from ottla.records.compression import (
    Compression,
    compress,
    compression_named,
    compression_of,
    decompress,
)

TEXT = b"".join(b"line %d of a text that repeats itself; " % (i % 97) for i in range(5_000))
CODECS = [codec for codec in Compression if codec is not Compression.NONE]


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("data", [b"", b"a", TEXT, bytes(1_000_000)], ids=len)
def test_what_is_compressed_comes_back(codec: Compression, data: bytes) -> None:
    compressed = compress(codec, data)
    assert decompress(codec, compressed) == data
    assert decompress(codec, memoryview(compressed)) == data
    assert decompress(codec, compress(codec, memoryview(bytearray(data)))) == data


@pytest.mark.parametrize("codec", CODECS)
def test_nothing_expands_past_its_limit(codec: Compression) -> None:
    bomb = compress(codec, bytes(10_000_000))
    assert len(decompress(codec, bomb, 10_000_000)) == 10_000_000
    for limit_bytes in (9_999_999, 100_000, 0):
        with pytest.raises(InvalidRecord, match="expands"):
            decompress(codec, bomb, limit_bytes)


@pytest.mark.parametrize("codec", CODECS)
def test_truncated_data_is_refused(codec: Compression) -> None:
    compressed = compress(codec, TEXT)
    for size in [*range(40), len(compressed) // 2, len(compressed) - 1]:
        try:
            content = decompress(codec, compressed[:size], 1_000_000)
        except InvalidRecord:
            continue
        # A snappy stream says nowhere how many blocks there are: its bare header is an empty one.
        assert codec is Compression.SNAPPY
        assert content == b""


@pytest.mark.parametrize("codec", CODECS)
def test_other_data_is_refused(codec: Compression) -> None:
    for data in (b"not compressed at all, is it?", b"\xff" * 50):
        with pytest.raises(InvalidRecord, match="damaged"):
            decompress(codec, data, 1_000_000)


def test_the_codec_is_in_the_low_three_bits() -> None:
    assert [compression_of(0xF8 | codec) for codec in Compression] == list(Compression)
    for number in (5, 6, 7):
        with pytest.raises(UnsupportedCompression):
            compression_of(number)


def test_codecs_are_found_by_the_names_of_the_setting() -> None:
    for codec in Compression:
        assert compression_named(codec.config_name) is codec
    assert compression_named("uncompressed") is Compression.NONE
    with pytest.raises(UnsupportedCompression):
        compression_named("brotli")


def test_snappy_is_written_in_blocks_behind_the_xerial_header() -> None:
    compressed = compress(Compression.SNAPPY, bytes(100_000))
    assert compressed[:16].hex() == "82534e41505059000000000100000001"
    sizes = []
    position = 16
    while position < len(compressed):
        (size,) = struct.unpack_from(">i", compressed, position)
        block = compressed[position + 4 : position + 4 + size]
        sizes.append(len(bytes(cramjam.snappy.decompress_raw(block))))
        position += 4 + size
    assert sizes == [32_768, 32_768, 32_768, 1_696]


def test_snappy_is_read_without_framing_and_joined() -> None:
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT
    framed = compress(Compression.SNAPPY, TEXT)
    assert decompress(Compression.SNAPPY, framed + framed) == TEXT + TEXT


@pytest.mark.parametrize("size", [-1, 0, 5, 2**31 - 1])
def test_a_snappy_block_of_a_wrong_size_is_refused(size: int) -> None:
    header = compress(Compression.SNAPPY, b"")
    with pytest.raises(InvalidRecord):
        decompress(Compression.SNAPPY, header + struct.pack(">i", size) + b"\0\0")


def test_gzip_members_may_be_joined() -> None:
    joined = gzip.compress(TEXT) + gzip.compress(b"more")
    assert decompress(Compression.GZIP, joined) == TEXT + b"more"
    assert gzip.decompress(compress(Compression.GZIP, TEXT)) == TEXT


def test_lz4_blocks_stand_alone_because_java_reads_no_others() -> None:
    flags = compress(Compression.LZ4, TEXT)[4]
    assert flags & 0x20
    assert lz4.frame.decompress(compress(Compression.LZ4, TEXT)) == TEXT


@pytest.mark.parametrize("block_linked", [True, False])
@pytest.mark.parametrize("checksum", [True, False])
def test_lz4_is_read_in_every_variant(block_linked: bool, checksum: bool) -> None:
    frame = lz4.frame.compress(
        TEXT, block_linked=block_linked, content_checksum=checksum, block_checksum=checksum
    )
    assert decompress(Compression.LZ4, frame) == TEXT


def test_lz4_without_the_package_is_compressed_by_cramjam(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_lz4_package_compress", None)
    frame = compress(Compression.LZ4, TEXT)
    assert frame[4] & 0x20
    assert lz4.frame.decompress(frame) == TEXT


def test_zstd_frames_need_not_say_how_large_they_are() -> None:
    compressor = cramjam.zstd.Compressor(3)
    compressor.compress(bytes(5_000_000))
    frame = bytes(compressor.finish())
    assert decompress(Compression.ZSTD, frame) == bytes(5_000_000)


@pytest.mark.parametrize(
    ("codec", "levels"),
    [
        (Compression.GZIP, (-1, 1, 9)),
        (Compression.LZ4, (1, 9, 17)),
        (Compression.ZSTD, (-131_072, 1, 22)),
    ],
)
def test_every_level_kafka_allows_works(codec: Compression, levels: tuple[int, ...]) -> None:
    for level in levels:
        assert decompress(codec, compress(codec, TEXT, level)) == TEXT


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("has_lz4", [True, False])
def test_any_kind_of_bytes_can_be_compressed(
    codec: Compression, has_lz4: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_lz4:
        monkeypatch.setattr(compression, "_lz4_package_compress", None)
    for data in (TEXT, bytearray(TEXT), memoryview(TEXT)):
        assert decompress(codec, compress(codec, data)) == TEXT
