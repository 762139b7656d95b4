"""GlobalKTable: a table of which every task knows every record."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.streams.graph import Graph
from ottla.streams.serdes import Serde


@dataclass(frozen=True, slots=True, eq=False)
class GlobalKTable:
    """What a stream can be joined with by any key, without being moved."""

    graph: Graph
    store: str
    key: Serde
    value: Serde
