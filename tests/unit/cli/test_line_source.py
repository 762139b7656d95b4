"""Lines from a descriptor, in whatever pieces they come."""

import asyncio
import os
from pathlib import Path
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from ottla.cli import line_source
from ottla.cli.line_source import CHUNK_BYTES, read_lines


async def collect(descriptor: int) -> list[bytes]:
    return [line async for lines in read_lines(descriptor) for line in lines]


def lines_of(content: bytes) -> list[bytes]:
    reading, writing = os.pipe()
    try:
        os.write(writing, content)
        os.close(writing)
        return asyncio.run(collect(reading))
    finally:
        os.close(reading)


@given(st.lists(st.binary(max_size=20).filter(lambda line: not set(line) & {10, 13}), max_size=20))
def test_every_line_comes_once_and_in_order(lines: list[bytes]) -> None:
    content = b"".join(line + b"\n" for line in lines)
    assert lines_of(content) == lines


def test_the_last_line_needs_no_end() -> None:
    assert lines_of(b"one\ntwo") == [b"one", b"two"]


def test_line_ends_of_windows_are_cut_off() -> None:
    assert lines_of(b"one\r\ntwo\r\n") == [b"one", b"two"]


def test_lines_may_be_longer_than_one_read(tmp_path: Path) -> None:
    line = b"x" * (3 * CHUNK_BYTES + 17)
    path = tmp_path / "long"
    path.write_bytes(line + b"\nshort\n")
    with path.open("rb") as file:
        assert asyncio.run(collect(file.fileno())) == [line, b"short"]


@given(content=st.text("ab\n", max_size=30), size=st.integers(1, 4))
def test_the_pieces_do_not_matter(content: str, size: int) -> None:
    with mock.patch.object(line_source, "CHUNK_BYTES", size):
        assert b"\n".join(lines_of(content.encode())) == content.removesuffix("\n").encode()
