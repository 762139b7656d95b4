"""Pages hold what a dictionary would, in order, and a batch reads only what it touches."""

import random
from collections.abc import Iterator
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.streams.engine.stores import MemoryStore
from ottla.streams.spark import pages
from ottla.streams.spark.pages import PAGE_BYTES_MAX as REAL_PAGE_BYTES
from ottla.streams.spark.pages import PagedStore

KEYS = st.binary(max_size=2)
VALUES = st.binary(max_size=6)
CHANGES = st.lists(st.tuples(KEYS, st.none() | VALUES | VALUES | VALUES), max_size=60)
SMALL_PAGE_BYTES = 24
"""So that a few entries make a tree of several levels."""


@pytest.fixture(autouse=True, scope="module")
def small_pages() -> Iterator[None]:
    with patch.object(pages, "PAGE_BYTES_MAX", SMALL_PAGE_BYTES):
        yield


class CountingCells:
    """Cells in memory that count what is asked of them."""

    def __init__(self) -> None:
        self.held: dict[int, bytes] = {}
        self.reads = self.writes = 0

    def get(self, number: int) -> bytes | None:
        self.reads += 1
        return self.held.get(number)

    def put(self, number: int, data: bytes) -> None:
        self.writes += 1
        self.held[number] = data

    def delete(self, number: int) -> None:
        self.writes += 1
        del self.held[number]


def apply(store: PagedStore | MemoryStore, changes: list[tuple[bytes, bytes | None]]) -> None:
    for key, value in changes:
        if value is None:
            store.delete(key)
        else:
            store.put(key, value)


@given(st.lists(CHANGES, max_size=6), KEYS, st.none() | KEYS)
def test_pages_hold_what_was_put_through_any_number_of_batches(
    batches: list[list[tuple[bytes, bytes | None]]], start: bytes, end: bytes | None
) -> None:
    cells, expected = CountingCells(), MemoryStore()
    for changes in batches:
        store = PagedStore(cells)
        apply(store, changes)
        apply(expected, changes)
        store.save()
    store = PagedStore(cells)
    assert list(store.range(start, end)) == list(expected.range(start, end))
    assert list(store.range(b"", None)) == list(expected.range(b"", None))
    for key, value in expected.range(b"", None):
        assert store.get(key) == value
    assert store.get(b"nothing has this key") is None


@pytest.mark.parametrize("seed", range(3))
def test_a_tree_of_many_levels_holds_through_many_batches(seed: int) -> None:
    chance, cells, expected = random.Random(seed), CountingCells(), MemoryStore()
    for _ in range(40):
        store = PagedStore(cells)
        keys = [b"%04d" % chance.randrange(800) for _ in range(40)]
        apply(store, [(key, chance.choice((None, b"x", b"yy", b"zzz"))) for key in keys])
        store.save()
        for key in keys:
            value = store.get(key)
            apply(expected, [(key, value)])
    store = PagedStore(cells)
    held = list(expected.range(b"", None))
    assert list(store.range(b"", None)) == held
    for first in range(0, len(held), 37):
        for last in range(first, len(held), 41):
            assert list(store.range(held[first][0], held[last][0])) == held[first:last]


@given(CHANGES)
def test_what_is_deleted_leaves_no_pages(changes: list[tuple[bytes, bytes | None]]) -> None:
    cells = CountingCells()
    store = PagedStore(cells)
    apply(store, changes)
    store.save()
    store = PagedStore(cells)
    for key, _ in list(store.range(b"", None)):
        store.delete(key)
    store.save()
    assert list(PagedStore(cells).range(b"", None)) == []
    assert set(cells.held) <= {0}


@patch.object(pages, "PAGE_BYTES_MAX", REAL_PAGE_BYTES)
def test_a_batch_reads_and_writes_only_the_pages_on_its_way() -> None:
    cells = CountingCells()
    store = PagedStore(cells)
    for number in range(20_000):
        store.put(b"%08d" % number, b"x" * 20)
    store.save()
    assert len(cells.held) > 20_000 * 28 // REAL_PAGE_BYTES
    assert max(map(len, cells.held.values())) < 2 * REAL_PAGE_BYTES

    cells.reads = cells.writes = 0
    store = PagedStore(cells)
    store.put(b"%08d" % 7_777, b"y" * 20)
    assert len(list(store.range(b"%08d" % 5_000, b"%08d" % 5_010))) == 10
    store.save()
    assert cells.reads <= 8
    assert cells.writes == 1
