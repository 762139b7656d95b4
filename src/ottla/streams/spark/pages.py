"""A store whose entries stand in pages, ordered by key: what Spark's state lacks.

Spark's state answers one key at a time. Here each of its values is a page of neighbouring entries,
and pages are found through pages of first keys, so that a batch reads and writes only what it
touches, and a range is read page after page.

Invariants:
1. Page 0 is the root. Of an inner page, entry i leads to all keys from its key on, up to the next;
   the first leads to all smaller ones as well.
2. No page but the root is empty.
3. A page is read once, and written by `save` only, if it changed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final, Protocol

import msgspec

PAGE_BYTES_MAX: Final = 4096
_ROOT: Final = 0


class Cells(Protocol):
    """Bytes by number, in no order."""

    def get(self, number: int) -> bytes | None: ...
    def put(self, number: int, data: bytes) -> None: ...
    def delete(self, number: int) -> None: ...


class _Stored(msgspec.Struct, array_like=True):
    """A page as it is kept."""

    is_leaf: bool
    keys: list[bytes]
    values: list[bytes]
    children: list[int]
    next_number: int


class _Page:
    __slots__ = ("children", "is_leaf", "keys", "number", "size_bytes", "values")

    def __init__(
        self, number: int, keys: list[bytes], values: list[bytes], children: list[int]
    ) -> None:
        self.number = number
        self.keys = keys
        self.values = values
        self.children = children
        self.is_leaf = not children
        self.size_bytes = sum(map(len, keys)) + sum(map(len, values)) + 8 * len(children)

    @property
    def is_full(self) -> bool:
        return self.size_bytes > PAGE_BYTES_MAX and len(self.keys) > 1

    def place_of(self, key: bytes) -> int:
        """Which child leads to the key."""
        return max(0, bisect_right(self.keys, key) - 1)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Stored).decode


class PagedStore:
    """Entries in order, over cells. What was put is there at once, and kept by `save`."""

    __slots__ = ("_cells", "_changed", "_next_number", "_pages", "_removed")

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._pages: dict[int, _Page] = {}
        self._changed: set[int] = set()
        self._removed: set[int] = set()
        self._next_number = 1
        data = cells.get(_ROOT)
        if data is None:
            self._pages[_ROOT] = _Page(_ROOT, [], [], [])
        else:
            self._next_number = self._take(_ROOT, data)

    def get(self, key: bytes) -> bytes | None:
        page = self._way(key)[-1]
        place = bisect_left(page.keys, key)
        if place < len(page.keys) and page.keys[place] == key:
            return page.values[place]
        return None

    def put(self, key: bytes, value: bytes) -> None:
        way = self._way(key)
        page = way[-1]
        place = bisect_left(page.keys, key)
        if place < len(page.keys) and page.keys[place] == key:
            page.size_bytes += len(value) - len(page.values[place])
            page.values[place] = value
        else:
            page.keys.insert(place, key)
            page.values.insert(place, value)
            page.size_bytes += len(key) + len(value)
        self._changed.add(page.number)
        if page.is_full:
            self._split(way)

    def delete(self, key: bytes) -> None:
        way = self._way(key)
        page = way[-1]
        place = bisect_left(page.keys, key)
        if place == len(page.keys) or page.keys[place] != key:
            return
        page.size_bytes -= len(key) + len(page.values[place])
        del page.keys[place], page.values[place]
        self._changed.add(page.number)
        if not page.keys:
            self._remove_empty(way)

    def range(self, start: bytes, end: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Entries with start <= key < end, in order; nothing may be put meanwhile."""
        return self._range(self._page(_ROOT), start, end)

    def save(self) -> None:
        """Writes the pages that changed."""
        for number in self._changed - self._removed:
            page = self._pages[number]
            following = self._next_number if number == _ROOT else 0
            stored = _Stored(page.is_leaf, page.keys, page.values, page.children, following)
            self._cells.put(number, _encode(stored))
        for number in self._removed:
            self._cells.delete(number)
        self._changed.clear()
        self._removed.clear()

    def _range(self, page: _Page, start: bytes, end: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        if page.is_leaf:
            first = bisect_left(page.keys, start)
            last = len(page.keys) if end is None else bisect_left(page.keys, end)
            yield from zip(page.keys[first:last], page.values[first:last], strict=True)
            return
        for place in range(page.place_of(start), len(page.keys)):
            if place and end is not None and page.keys[place] >= end:
                return
            yield from self._range(self._page(page.children[place]), start, end)

    def _way(self, key: bytes) -> list[_Page]:
        """The pages from the root to the leaf where the key is or would be."""
        way = [self._page(_ROOT)]
        while not way[-1].is_leaf:
            page = way[-1]
            way.append(self._page(page.children[page.place_of(key)]))
        return way

    def _page(self, number: int) -> _Page:
        if number not in self._pages:
            data = self._cells.get(number)
            assert data is not None, f"page {number} is missing"
            self._take(number, data)
        return self._pages[number]

    def _take(self, number: int, data: bytes) -> int:
        stored = _decode(data)
        self._pages[number] = _Page(number, stored.keys, stored.values, stored.children)
        return stored.next_number

    def _new(self, keys: list[bytes], values: list[bytes], children: list[int]) -> _Page:
        page = _Page(self._next_number, keys, values, children)
        self._next_number += 1
        self._pages[page.number] = page
        self._changed.update((page.number, _ROOT))  # the root remembers the next number
        return page

    def _split(self, way: list[_Page]) -> None:
        """Cuts full pages in two, from the leaf upwards."""
        while way and way[-1].is_full:
            page = way.pop()
            half = len(page.keys) // 2
            right = self._new(page.keys[half:], page.values[half:], page.children[half:])
            left = _Page(page.number, page.keys[:half], page.values[:half], page.children[:half])
            if page.number == _ROOT:
                moved = self._new(left.keys, left.values, left.children)
                pages = [moved.number, right.number]
                self._pages[_ROOT] = _Page(_ROOT, [moved.keys[0], right.keys[0]], [], pages)
                return
            self._pages[page.number] = left
            self._changed.add(page.number)
            parent = way[-1]
            place = parent.children.index(page.number) + 1
            parent.keys.insert(place, right.keys[0])
            parent.children.insert(place, right.number)
            parent.size_bytes += len(right.keys[0]) + 8
            self._changed.add(parent.number)

    def _remove_empty(self, way: list[_Page]) -> None:
        """Takes empty pages out, from the leaf upwards."""
        while len(way) > 1 and not way[-1].keys:
            page = way.pop()
            self._removed.add(page.number)
            del self._pages[page.number]
            parent = way[-1]
            place = parent.children.index(page.number)
            parent.size_bytes -= len(parent.keys[place]) + 8
            del parent.keys[place], parent.children[place]
            self._changed.add(parent.number)
        if not way[-1].keys:
            self._pages[_ROOT] = _Page(_ROOT, [], [], [])
