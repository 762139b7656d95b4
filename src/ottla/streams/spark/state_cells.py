"""The cells of one store in the state of a Spark task: one map for all stores of a partition."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import BinaryType, StructField, StructType

from ottla.streams.spark.pages import PagedStore

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle

STATE_NAME: Final = "pages"
_NUMBER: Final = struct.Struct(">Q")
_KEY: Final = StructType([StructField("page", BinaryType(), nullable=False)])
_VALUE: Final = StructType([StructField("entries", BinaryType(), nullable=False)])


def open_state(handle: StatefulProcessorHandle) -> MapState:
    """The map of the partition whose turn it is."""
    return handle.getMapState(STATE_NAME, _KEY, _VALUE)


class StateCells:
    """The pages of one store: its name and their number are the key in the map."""

    __slots__ = ("_prefix", "_state")

    def __init__(self, state: MapState, store: str) -> None:
        self._state = state
        self._prefix = store.encode() + b"\0"

    def get(self, number: int) -> bytes | None:
        found = self._state.getValue((self._prefix + _NUMBER.pack(number),))
        return None if found is None else bytes(found[0])

    def put(self, number: int, data: bytes) -> None:
        self._state.updateValue((self._prefix + _NUMBER.pack(number),), (data,))

    def delete(self, number: int) -> None:
        self._state.removeKey((self._prefix + _NUMBER.pack(number),))


class TaskStores:
    """The stores of one partition for one micro-batch."""

    __slots__ = ("_opened", "_state")

    def __init__(self, state: MapState) -> None:
        self._state = state
        self._opened: dict[str, PagedStore] = {}

    def open(self, name: str) -> PagedStore:
        """A store by its name."""
        if name not in self._opened:
            self._opened[name] = PagedStore(StateCells(self._state, name))
        return self._opened[name]

    def save(self) -> None:
        """Writes what changed into Spark's state."""
        for store in self._opened.values():
            store.save()
