"""One result of several grouped streams, each with an aggregator of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.streams.failures import TopologyError
from ottla.streams.graph import Graph
from ottla.streams.grouped import (
    Emit,
    KGroupedStream,
    check_merger,
    checked_emit,
    checked_initializer,
    checked_windows,
    windowed_key,
    windowed_store,
)
from ottla.streams.operators import Aggregate, Fold, TablePassThrough, WindowAggregate
from ottla.streams.serdes import SerdeChoice
from ottla.streams.store_spec import StoreKind, StoreSpec
from ottla.streams.windows import AnyWindows

if TYPE_CHECKING:
    from ottla.streams.table import KTable

Aggregator = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, slots=True, eq=False)
class CogroupedStream:
    """Grouped streams with their aggregators, and the windows they share."""

    graph: Graph
    members: tuple[tuple[KGroupedStream, Aggregator], ...] = ()
    windows: AnyWindows | None = None
    emit: Emit = "update"

    def cogroup(self, grouped: KGroupedStream, aggregator: Aggregator) -> CogroupedStream:
        """Adds a grouped stream; `aggregator(key, value, result)` adds its records."""
        if grouped.stream.graph is not self.graph:
            raise TopologyError("the grouped streams come from different builders; use one builder")
        added = (*self.members, (grouped, aggregator))
        return CogroupedStream(self.graph, added, self.windows, self.emit)

    def windowed_by(self, windows: AnyWindows, *, emit: Emit = "update") -> CogroupedStream:
        """The same, in every window of its own."""
        return CogroupedStream(
            self.graph, self.members, checked_windows(windows), checked_emit(emit)
        )

    def aggregate(
        self,
        initializer: Callable[[], Any],
        *,
        merger: Callable[[Any, Any, Any], Any] | None = None,
        value: SerdeChoice | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """The one result for each key, beginning with `initializer()`."""
        from ottla.streams.table import KTable

        check_merger(self.windows, merger)
        begin, graph = checked_initializer(initializer), self.graph
        named = store or graph.new_name("COGROUPKSTREAM-AGGREGATE-STATE-STORE")
        base = name or graph.new_name("COGROUPKSTREAM-AGGREGATE")
        streams = [
            grouped.settled(f"{named}-{number}") for number, (grouped, _) in enumerate(self.members)
        ]
        key, serde = streams[0].key, graph.value_serde(value)
        graph.copartition(*(stream.node for stream in streams))
        if self.windows is None:
            graph.add_store(StoreSpec(named, StoreKind.TABLE, key, serde))
        else:
            graph.add_store(windowed_store(named, self.windows, self.emit, key, serde))
        nodes = []
        for number, (stream, (_, aggregator)) in enumerate(zip(streams, self.members, strict=True)):
            operator = self._operator(named, Fold(begin, aggregator, merger))
            nodes.append(graph.add(f"{base}-{number}", operator, [stream.node], [named]))
        node = graph.add(base, TablePassThrough(named), nodes, [named])
        keys = key if self.windows is None else windowed_key(self.windows, key)
        return KTable(graph, node, keys, serde)

    def _operator(self, store: str, fold: Fold) -> Aggregate | WindowAggregate:
        if self.windows is None:
            return Aggregate(store, fold)
        return WindowAggregate(store, fold, self.windows, self.emit == "close")
