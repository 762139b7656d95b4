"""The checksum in the header of an lz4 frame."""

import lz4.frame
import pytest

from ottla.records.lz4_header import with_old_checksum, with_right_checksum, xxhash32


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0x02CC5D05),
        (b"a", 0x550D7456),
        (b"abc", 0x32D153FF),
        (b"Nobody inspects the spammish repetition", 0xE2293B2F),
    ],
)
def test_xxhash32_of_known_texts(data: bytes, expected: int) -> None:
    assert xxhash32(data) == expected


@pytest.mark.parametrize("store_size", [True, False])
def test_a_right_frame_is_left_as_it_is(store_size: bool) -> None:
    frame = lz4.frame.compress(b"some text" * 100, store_size=store_size)
    assert with_right_checksum(frame) is frame


@pytest.mark.parametrize("store_size", [True, False])
def test_the_old_checksum_is_put_right(store_size: bool) -> None:
    frame = lz4.frame.compress(b"some text" * 100, store_size=store_size)
    old = with_old_checksum(frame)
    assert old != frame
    with pytest.raises(RuntimeError):
        lz4.frame.decompress(old)
    assert with_right_checksum(old) == frame


@pytest.mark.parametrize(
    "data", [b"", b"\x04\x22\x4d\x18", b"\x04\x22\x4d\x18\xff\x40\x00", b"x" * 20]
)
def test_what_is_no_frame_is_left_as_it_is(data: bytes) -> None:
    assert with_right_checksum(data) is data
    assert with_old_checksum(data) is data
