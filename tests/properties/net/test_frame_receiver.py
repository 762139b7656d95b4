"""Frames survive any split of the stream, and nothing is allocated for what only was announced."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import FrameTooLarge
from ottla.net.frame_receiver import EAGER_BYTES_MAX, SCRATCH_BYTES, FrameReceiver

FRAME_BYTES_MAX = 2 * 1024 * 1024


def a_receiver() -> FrameReceiver:
    return FrameReceiver(memoryview(bytearray(SCRATCH_BYTES)), FRAME_BYTES_MAX)


def feed(receiver: FrameReceiver, stream: bytes, cuts: list[int]) -> list[bytes]:
    """Hands the stream over in pieces, as a socket would, and returns the frames that came out."""
    frames = []
    start = 0
    pieces = iter([*cuts, *[len(stream)] * (len(stream) + 1)])
    while start < len(stream):
        buffer = receiver.buffer()
        size = max(1, min(next(pieces), len(buffer), len(stream) - start))
        buffer[:size] = stream[start : start + size]
        start += size
        receiver.received(size)
        while (frame := receiver.next_frame()) is not None:
            frames.append(bytes(frame))
        receiver.settle()
        if receiver.needs_room:
            receiver.begin_large()
    return frames


sizes = st.one_of(st.integers(8, 300), st.integers(8, 3 * SCRATCH_BYTES))


@given(st.lists(sizes, max_size=8), st.lists(st.integers(1, SCRATCH_BYTES), max_size=30))
def test_frames_survive_any_split(frame_sizes: list[int], cuts: list[int]) -> None:
    frames = [bytes([n % 251]) * size for n, size in enumerate(frame_sizes)]
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)
    assert feed(a_receiver(), stream, cuts) == frames


@given(st.lists(st.integers(8, 40), min_size=1, max_size=20), st.integers(1, 20))
def test_frames_left_for_later_are_not_lost(frame_sizes: list[int], handled: int) -> None:
    frames = [bytes([n % 251]) * size for n, size in enumerate(frame_sizes)]
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)
    receiver = a_receiver()
    receiver.buffer()[: len(stream)] = stream
    receiver.received(len(stream))
    seen = []
    while len(seen) < handled and (frame := receiver.next_frame()) is not None:
        seen.append(bytes(frame))
    receiver.settle()
    receiver.buffer()
    receiver.received(0)
    while (frame := receiver.next_frame()) is not None:
        seen.append(bytes(frame))
    assert seen == frames


@pytest.mark.parametrize("size", [-1, 0, 7, FRAME_BYTES_MAX + 1, 0x7FFFFFFF, 0x47455420])
def test_a_size_out_of_bounds_is_refused_before_its_bytes_come(size: int) -> None:
    receiver = a_receiver()
    receiver.buffer()[:4] = struct.pack(">i", size)
    receiver.received(4)
    with pytest.raises(FrameTooLarge):
        receiver.next_frame()


def test_an_announced_frame_takes_no_more_memory_than_the_eager_limit() -> None:
    receiver = a_receiver()
    receiver.buffer()[:5] = struct.pack(">i", FRAME_BYTES_MAX) + b"x"
    receiver.received(5)
    assert receiver.next_frame() is None
    receiver.settle()
    assert receiver.needs_room
    receiver.begin_large()
    assert receiver.kept_bytes == 1
    assert len(receiver.buffer()) == EAGER_BYTES_MAX - 1
