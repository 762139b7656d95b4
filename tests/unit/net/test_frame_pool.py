"""Memory of large frames: used again when nobody looks at it, and never before."""

import random

from ottla.net.frame_pool import POOL_BYTES_MAX, POOLED_BYTES_MIN, FramePool

LARGE = 2 * POOLED_BYTES_MIN


def test_memory_is_used_again_when_the_last_view_of_it_is_gone() -> None:
    pool = FramePool()
    first = pool.take(LARGE)
    owner = first.obj
    part = first[10:20]
    del first
    assert pool.take(LARGE).obj is not owner, "a part of the frame is still looked at"
    del part
    assert any(pool.take(LARGE).obj is owner for _ in range(2))


def test_a_frame_has_exactly_the_room_it_asked_for() -> None:
    pool = FramePool()
    for size in (0, 1, POOLED_BYTES_MIN - 1, POOLED_BYTES_MIN, LARGE + 1, POOL_BYTES_MAX + 1):
        assert len(pool.take(size)) == size


def test_a_smaller_frame_fits_where_a_larger_one_was() -> None:
    pool = FramePool()
    owner = pool.take(4 * LARGE).obj
    assert pool.take(LARGE).obj is owner


def test_no_frame_that_is_looked_at_is_ever_written_over() -> None:
    pool = FramePool()
    chance = random.Random(7)
    held: list[tuple[memoryview, int]] = []
    for number in range(300):
        frame = pool.take(chance.randrange(POOLED_BYTES_MIN // 2, 3 * POOLED_BYTES_MIN))
        frame[:] = bytes([number % 251]) * len(frame)
        held.append((frame[5:], number % 251))
        if chance.random() < 0.6:
            held.pop(chance.randrange(len(held)))
        if len(held) > 20:
            held.pop(0)
        for view, letter in held:
            assert view[0] == letter
            assert view[-1] == letter


def test_a_pool_keeps_no_more_than_its_limit() -> None:
    pool = FramePool()
    held = [pool.take(POOL_BYTES_MAX // 4) for _ in range(10)]
    assert sum(map(len, pool._buffers)) <= POOL_BYTES_MAX
    del held
    assert len(pool.take(POOL_BYTES_MAX - 1)) == POOL_BYTES_MAX - 1
    assert sum(map(len, pool._buffers)) <= POOL_BYTES_MAX
