"""The numbers a task must not forget between batches: times it has seen, timers, what was emitted.

They are read and written as plain attributes while records run, and kept in a store at the end of
a batch, those that changed.
"""

from __future__ import annotations

import struct
from typing import Final

from ottla.streams.engine.stores import Store

_NUMBER: Final = struct.Struct(">q")
UNKNOWN: Final = -1
"""A time nobody has seen yet."""


class Cell:
    """One number, -1 until it is known."""

    __slots__ = ("saved", "value")

    def __init__(self, value: int) -> None:
        self.value = value
        self.saved = value


class Progress:
    """All the numbers of a task, by name."""

    __slots__ = ("_cells", "_store")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cells: dict[str, Cell] = {}

    def cell(self, name: str) -> Cell:
        """The number of that name; everybody who asks gets the same one."""
        if name not in self._cells:
            data = self._store.get(name.encode())
            self._cells[name] = Cell(UNKNOWN if data is None else _NUMBER.unpack(data)[0])
        return self._cells[name]

    def save(self) -> None:
        """Writes the numbers that changed."""
        for name, cell in self._cells.items():
            if cell.value != cell.saved:
                self._store.put(name.encode(), _NUMBER.pack(cell.value))
                cell.saved = cell.value
