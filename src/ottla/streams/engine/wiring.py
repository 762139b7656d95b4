"""What a node gets when a task is put together: its children, its stores, its numbers.

A processor is a function of key, value, timestamp and headers; it calls `forward`, which is the
same kind of function. No record object is made between nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ottla.streams.engine.progress import Cell, Progress
from ottla.streams.engine.records import Headers, OutputRecord
from ottla.streams.engine.session_store import SessionStore
from ottla.streams.engine.stores import OverlayStore, Store
from ottla.streams.engine.table_store import KeyValueStore, TableStore
from ottla.streams.engine.window_store import JoinStore, WindowStore
from ottla.streams.store_spec import StoreKind, StoreSpec
from ottla.streams.topology import Node, Topology

Forward = Callable[[Any, Any, int, Headers], None]
Lookup = Callable[[Any], tuple[Any, int] | None]
"""A table's present value and its timestamp."""
TypedStore = TableStore | KeyValueStore | WindowStore | SessionStore | JoinStore


class DropReason(Enum):
    """Why a record went no further, where that may surprise."""

    NULL_KEY = "null key"
    NULL_VALUE = "null value"
    LATE = "its window has closed"
    NULL_FOREIGN_KEY = "null foreign key"
    OUTDATED_ANSWER = "the row changed since it asked"


@dataclass(slots=True)
class TaskState:
    """What the nodes of one task share."""

    partition: int
    progress: Progress
    outputs: list[OutputRecord] = field(default_factory=list)
    dropped: Counter[tuple[str, DropReason]] = field(default_factory=Counter)
    topic: str = ""
    offset: int = -1
    wall_clock_ms: int = 0


@dataclass(slots=True)
class Stores:
    """The stores of one task: bytes below, typed faces above."""

    state: TaskState
    overlays: dict[str, OverlayStore]
    shared: Mapping[str, Store]
    specs: Mapping[str, StoreSpec]
    _typed: dict[str, TypedStore] = field(default_factory=dict)

    def raw(self, name: str) -> Store:
        return self.overlays[name]

    def typed(self, name: str) -> Any:
        """The store with its serdes; everybody who asks gets the same one."""
        if name not in self._typed:
            self._typed[name] = self._face(self.specs[name])
        return self._typed[name]

    def table(self, name: str) -> TableStore:
        store = self.typed(name)
        assert isinstance(store, TableStore)
        return store

    def _face(self, spec: StoreSpec) -> TypedStore:
        below: Store = self.shared[spec.name] if spec.is_global else self.overlays[spec.name]
        newest = self.state.progress.cell(f"newest {spec.name}")
        match spec.kind:
            case StoreKind.TABLE:
                return TableStore(spec, below)
            case StoreKind.KEY_VALUE:
                return KeyValueStore(spec, below)
            case StoreKind.WINDOW:
                return WindowStore(spec, below, newest)
            case StoreKind.SESSION:
                return SessionStore(spec, below, newest)
            case StoreKind.JOIN_WINDOW:
                return JoinStore(spec, below, newest)
        raise AssertionError(spec.kind)

    def expire(self) -> None:
        """Removes from the stores of windows what is too old."""
        for store in self._typed.values():
            if isinstance(store, WindowStore | SessionStore | JoinStore):
                store.expire()


@dataclass(frozen=True, slots=True)
class Wiring:
    """One node's place in a task."""

    node: Node
    children: tuple[Forward, ...]
    forward: Forward
    state: TaskState
    stores: Stores
    topology: Topology
    lookup: Callable[[str], Lookup]
    app_id: str
    partition_counts: Mapping[str, int]

    def cell(self, what: str) -> Cell:
        """A number of this node that must not be forgotten."""
        return self.state.progress.cell(f"{what} {self.node.name}")

    def shared_cell(self, what: str) -> Cell:
        """A number several nodes share."""
        return self.state.progress.cell(what)

    def drop(self, reason: DropReason) -> None:
        self.state.dropped[self.node.name, reason] += 1


def forward_to(children: tuple[Forward, ...]) -> Forward:
    """One function that calls all children, in the order they were drawn."""
    if not children:
        return _nowhere
    if len(children) == 1:
        return children[0]

    def to_all(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        for child in children:
            child(key, value, timestamp_ms, headers)

    return to_all


def _nowhere(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
    """Where records of a node without children go."""
