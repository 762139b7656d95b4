"""Rows of a table that belong together: aggregates that also take back what changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.streams.graph import Graph
from ottla.streams.grouped import checked_initializer
from ottla.streams.operators import Aggregation, Count, Fold, Reduce, TableAggregate
from ottla.streams.serdes import NamedSerde, Serde, SerdeChoice, serde_for
from ottla.streams.store_spec import StoreKind, StoreSpec

if TYPE_CHECKING:
    from ottla.streams.table import KTable


@dataclass(frozen=True, slots=True, eq=False)
class KGroupedTable:
    """A table grouped by a new key."""

    graph: Graph
    node: str
    key: Serde
    value: Serde

    def count(self, *, store: str | None = None, name: str | None = None) -> KTable:
        """How many rows each group has now."""
        return self._table((Count(), None), NamedSerde("int"), store, name)

    def reduce(
        self,
        adder: Callable[[Any, Any], Any],
        subtractor: Callable[[Any, Any], Any],
        *,
        value: SerdeChoice | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """`adder(result, value)` for a row that came, `subtractor(...)` for one that went."""
        serde = self.value if value is None else serde_for(value)
        return self._table((Reduce(adder), subtractor), serde, store, name)

    def aggregate(
        self,
        initializer: Callable[[], Any],
        adder: Callable[[Any, Any, Any], Any],
        subtractor: Callable[[Any, Any, Any], Any],
        *,
        value: SerdeChoice | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """`adder(key, value, result)` and `subtractor(key, value, result)`."""
        serde = self.graph.value_serde(value)
        fold = Fold(checked_initializer(initializer), adder)
        return self._table((fold, subtractor), serde, store, name)

    def _table(
        self,
        both: tuple[Aggregation, Callable[..., Any] | None],
        value: Serde,
        store: str | None,
        name: str | None,
    ) -> KTable:
        from ottla.streams.table import KTable

        named = store or self.graph.new_name("KTABLE-AGGREGATE-STATE-STORE")
        base = name or self.graph.new_name("KTABLE-AGGREGATE")
        self.graph.add_store(StoreSpec(named, StoreKind.TABLE, self.key, value))
        node = self.graph.add(base, TableAggregate(named, *both), [self.node], [named])
        return KTable(self.graph, node, self.key, value)
