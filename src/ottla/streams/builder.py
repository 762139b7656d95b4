"""StreamsBuilder: where a topology begins, and where it is finished."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.streams.failures import TopologyError
from ottla.streams.global_table import GlobalKTable
from ottla.streams.graph import Graph
from ottla.streams.operators import Source, TableSource
from ottla.streams.serdes import SerdeChoice, serde_for
from ottla.streams.store_spec import StoreKind, StoreSpec
from ottla.streams.stream import KStream
from ottla.streams.table import KTable
from ottla.streams.topology import GlobalTable, Topology


class StreamsBuilder:
    """Draws a topology. `key` and `value` are the serdes of whatever is given none of its own."""

    __slots__ = ("_graph",)

    def __init__(self, *, key: SerdeChoice = "str", value: SerdeChoice = "json") -> None:
        self._graph = Graph(default_key=serde_for(key), default_value=serde_for(value))

    def stream(
        self,
        *topics: str,
        key: SerdeChoice | None = None,
        value: SerdeChoice | None = None,
        timestamp_of: Callable[[Any, Any, int], int] | None = None,
        name: str | None = None,
    ) -> KStream:
        """The records of topics; `timestamp_of(key, value, timestamp_ms)` may give another time."""
        graph = self._graph
        node = self._source(topics, key, value, timestamp_of, name)
        return KStream(graph, node, graph.key_serde(key), graph.value_serde(value))

    def table(
        self,
        topic: str,
        *,
        key: SerdeChoice | None = None,
        value: SerdeChoice | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """A topic as a table: the latest value of every key; None deletes."""
        graph = self._graph
        source = self._source((topic,), key, value, None, name and f"{name}-source")
        keys, values = graph.key_serde(key), graph.value_serde(value)
        kept = store or graph.new_name(f"{topic}-STATE-STORE")
        graph.add_store(StoreSpec(kept, StoreKind.TABLE, keys, values))
        operator = TableSource(kept, materialized=store is not None)
        named = name or graph.new_name("KTABLE-SOURCE")
        node = graph.add(named, operator, [source], [kept] if store else [])
        return KTable(graph, node, keys, values)

    def global_table(
        self,
        topic: str,
        *,
        key: SerdeChoice | None = None,
        value: SerdeChoice | None = None,
        store: str | None = None,
    ) -> GlobalKTable:
        """A topic as a table that every task knows as a whole."""
        graph = self._graph
        keys, values = graph.key_serde(key), graph.value_serde(value)
        kept = store or graph.new_name(f"{topic}-GLOBAL-STORE")
        spec = StoreSpec(kept, StoreKind.TABLE, keys, values, logged=False, is_global=True)
        graph.add_store(spec)
        graph.global_tables.append(GlobalTable(topic, kept, Source((topic,), keys, values)))
        return GlobalKTable(graph, kept, keys, values)

    def add_store(self, spec: StoreSpec) -> str:
        """Adds a store for `process`; its name comes back."""
        return self._graph.add_store(spec)

    def build(self) -> Topology:
        """The topology as frozen data."""
        return self._graph.freeze()

    def _source(
        self,
        topics: tuple[str, ...],
        key: SerdeChoice | None,
        value: SerdeChoice | None,
        timestamp_of: Callable[[Any, Any, int], int] | None,
        name: str | None,
    ) -> str:
        if not topics or not all(isinstance(topic, str) and topic for topic in topics):
            raise TopologyError(f"name the topics to read, not {topics!r}")
        graph = self._graph
        source = Source(
            topics, graph.key_serde(key), graph.value_serde(value), timestamp_of=timestamp_of
        )
        return graph.add(name or graph.new_name("KSTREAM-SOURCE"), source)
