"""Frames survive any split of the stream, and nothing is allocated for what only was announced."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import FrameTooLarge
from ottla.net.frame_receiver import LARGE_FRAME_BYTES, READ_BYTES_MAX, FrameReceiver
from ottla.net.receive_buffers import BUFFER_BYTES, LENT_MAX, ReceiveBuffers

FRAME_BYTES_MAX = 2 * 1024 * 1024


def a_receiver(buffers: ReceiveBuffers | None = None) -> FrameReceiver:
    return FrameReceiver(buffers or ReceiveBuffers(), FRAME_BYTES_MAX)


def framed(frames: list[bytes]) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


class Client:
    """One of those whose bytes a server receives."""

    def __init__(self, buffers: ReceiveBuffers, frames: list[bytes]) -> None:
        self.receiver = a_receiver(buffers)
        self.expected = frames
        self.got: list[bytes] = []
        self._coming = framed(frames)

    @property
    def has_more(self) -> bool:
        return bool(self._coming)

    def read(self, size: int, bytes_max: int, *, waits: bool = False) -> None:
        """What one read of the socket does; with `waits` a large frame finds no room at first."""
        receiver = self.receiver
        buffer = receiver.buffer(bytes_max)
        size = max(1, min(size, len(buffer), len(self._coming)))
        buffer[:size] = self._coming[:size]
        self._coming = self._coming[size:]
        receiver.received(size)
        while (frame := receiver.next_frame()) is not None:
            self.got.append(bytes(frame))
        if receiver.settle():
            if waits:
                receiver.keep()
            receiver.begin_large()
        elif receiver.missing_bytes:
            receiver.grow_large()


frames_of_sizes = st.lists(
    st.one_of(
        st.integers(8, 300),
        st.integers(8, 900_000),
        st.sampled_from([BUFFER_BYTES - 4, BUFFER_BYTES + 1, FRAME_BYTES_MAX]),
    ),
    max_size=6,
).map(lambda sizes: [bytes([n % 251]) * size for n, size in enumerate(sizes)])
reads = st.tuples(
    st.integers(0, 2),
    st.one_of(st.integers(1, READ_BYTES_MAX), st.just(BUFFER_BYTES)),
    st.sampled_from([READ_BYTES_MAX, BUFFER_BYTES]),
    st.booleans(),
)


@given(st.lists(frames_of_sizes, min_size=3, max_size=3), st.lists(reads, max_size=60))
def test_frames_survive_any_split_among_the_frames_of_others(
    frames: list[list[bytes]], order: list[tuple[int, int, int, bool]]
) -> None:
    buffers = ReceiveBuffers()
    clients = [Client(buffers, each) for each in frames]
    for who, size, bytes_max, waits in order:
        if clients[who].has_more:
            clients[who].read(size, bytes_max, waits=waits)
    for client in clients:
        while client.has_more:
            client.read(BUFFER_BYTES, READ_BYTES_MAX)
        assert client.got == client.expected
    lent = [buffers.lend_shared() for _ in range(LENT_MAX)]
    assert None not in lent, "every buffer has come back"


def test_a_large_frame_goes_on_in_the_buffer_it_began_in() -> None:
    buffers = ReceiveBuffers()
    client = Client(buffers, [b"a" * 500_000])
    began_in = buffers.shared
    client.read(100_000, READ_BYTES_MAX)
    assert client.receiver.buffer().obj is began_in.obj
    assert len(client.receiver.buffer()) == 500_000 + 4 - 100_000, "not a byte of the next frame"
    assert buffers.shared.obj is not began_in.obj
    client.read(500_000, READ_BYTES_MAX)
    assert client.got == client.expected


def test_clients_that_stop_in_large_frames_hold_no_more_than_a_few_buffers() -> None:
    buffers = ReceiveBuffers()
    clients = [Client(buffers, [bytes([n]) * 100_000]) for n in range(LENT_MAX + 3)]
    for client in clients:
        client.read(70_000, READ_BYTES_MAX)
    assert buffers.lend_shared() is None
    for client in clients:
        client.read(100_000, READ_BYTES_MAX)
        assert client.got == client.expected


def test_a_client_that_goes_in_a_large_frame_leaves_its_buffer() -> None:
    buffers = ReceiveBuffers()
    for _ in range(LENT_MAX + 1):
        client = Client(buffers, [b"a" * 100_000])
        client.read(70_000, READ_BYTES_MAX)
        client.receiver.close()
    assert buffers.lend_shared() is not None


def test_a_large_size_out_of_bounds_gets_no_room_behind_frames_that_wait() -> None:
    receiver = a_receiver()
    stream = framed([b"a request"]) + struct.pack(">i", FRAME_BYTES_MAX + 1) + b"x"
    receiver.buffer()[: len(stream)] = stream
    receiver.received(len(stream))
    assert receiver.next_frame() == b"a request"
    assert not receiver.settle()
    receiver.buffer()
    receiver.received(0)
    with pytest.raises(FrameTooLarge):
        receiver.next_frame()


@given(st.lists(st.integers(8, 40), min_size=1, max_size=20), st.integers(1, 20))
def test_frames_left_for_later_are_not_lost(frame_sizes: list[int], handled: int) -> None:
    frames = [bytes([n % 251]) * size for n, size in enumerate(frame_sizes)]
    stream = framed(frames)
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


def come(receiver: FrameReceiver, data: bytes) -> None:
    receiver.buffer(BUFFER_BYTES)[: len(data)] = data
    receiver.received(len(data))
    assert receiver.next_frame() is None


def test_an_announced_frame_takes_no_memory_before_a_good_part_of_it_has_come() -> None:
    receiver = a_receiver()
    come(receiver, struct.pack(">i", FRAME_BYTES_MAX) + b"x" * (LARGE_FRAME_BYTES - 4))
    assert not receiver.settle()
    assert receiver.missing_bytes == 0
    come(receiver, b"x")
    assert receiver.settle()
    assert receiver.missing_bytes == BUFFER_BYTES


def test_a_frame_gets_twice_the_memory_that_its_bytes_have_filled() -> None:
    receiver = a_receiver()
    come(receiver, struct.pack(">i", FRAME_BYTES_MAX) + b"x" * LARGE_FRAME_BYTES)
    assert receiver.settle()
    receiver.begin_large()
    come(receiver, b"x" * (BUFFER_BYTES - LARGE_FRAME_BYTES - 1))
    assert receiver.missing_bytes == 0
    come(receiver, b"x")
    assert receiver.missing_bytes == FRAME_BYTES_MAX - BUFFER_BYTES
    receiver.grow_large()
    assert len(receiver.buffer()) == FRAME_BYTES_MAX - BUFFER_BYTES


@pytest.mark.parametrize("come", [READ_BYTES_MAX, BUFFER_BYTES - 5, BUFFER_BYTES - 4])
def test_one_read_may_bring_any_part_of_a_frame(come: int) -> None:
    client = Client(ReceiveBuffers(), [b"x" * FRAME_BYTES_MAX, b"y" * FRAME_BYTES_MAX])
    while client.has_more:
        client.read(4 + come, BUFFER_BYTES)
    assert client.got == client.expected
