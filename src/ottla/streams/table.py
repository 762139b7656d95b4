"""KTable: the latest value of every key, told as a stream of changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.streams import table_joins
from ottla.streams.expressions import checked_function
from ottla.streams.failures import TopologyError
from ottla.streams.graph import Graph
from ottla.streams.grouped import table_repartition
from ottla.streams.grouped_table import KGroupedTable
from ottla.streams.operators import (
    Function,
    JoinKind,
    MapValues,
    Operator,
    SelectKey,
    Suppress,
    TableFilter,
    TableGroup,
    TableMapValues,
    TableToStream,
    WindowAggregate,
)
from ottla.streams.serdes import Serde, SerdeChoice
from ottla.streams.store_spec import StoreKind, StoreSpec
from ottla.streams.stream import KStream
from ottla.streams.suppression import Suppressed
from ottla.streams.windows import SessionWindows


@dataclass(frozen=True, slots=True, eq=False)
class KTable:
    """A table in a topology that is being drawn. `store=` keeps a result where it can be read."""

    graph: Graph
    node: str
    key: Serde
    value: Serde

    def filter(
        self, predicate: Function, *, store: str | None = None, name: str | None = None
    ) -> KTable:
        """Keys whose value fulfils `predicate(key, value)`; others are deleted from the result."""
        return self._filtered(predicate, False, store, name)

    def filter_not(
        self, predicate: Function, *, store: str | None = None, name: str | None = None
    ) -> KTable:
        """Keys whose value does not fulfil the predicate."""
        return self._filtered(predicate, True, store, name)

    def map_values(
        self,
        mapper: Function,
        *,
        value: SerdeChoice | None = None,
        with_key: bool = False,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """`mapper(value)` of every value; deletions stay deletions."""
        serde = self.graph.value_serde(value)
        operator = TableMapValues(checked_function(mapper), with_key, store)
        return self._derived("KTABLE-MAPVALUES", operator, serde, name)

    def to_stream(
        self,
        selector: Function | None = None,
        *,
        key: SerdeChoice | None = None,
        name: str | None = None,
    ) -> KStream:
        """Every change as a record of its new value, of a new key if a selector is given."""
        named = name or self.graph.new_name("KTABLE-TOSTREAM")
        node = self.graph.add(named, TableToStream(), [self.node])
        stream = KStream(self.graph, node, self.key, self.value)
        return stream if selector is None else stream.select_key(selector, key=key)

    def group_by(
        self,
        mapper: Callable[[Any, Any], tuple[Any, Any]],
        *,
        key: SerdeChoice | None = None,
        value: SerdeChoice | None = None,
        name: str | None = None,
    ) -> KGroupedTable:
        """Groups rows by the new key `mapper(key, value)` gives with a new value."""
        named = name or self.graph.new_name("KTABLE-SELECT")
        node = self.graph.add(f"{named}-select", TableGroup(checked_function(mapper)), [self.node])
        self.graph.ask_for_old_values(self.node, force=True)
        keys, values = self.graph.key_serde(key), self.graph.value_serde(value)
        after = self.graph.through_topic(node, table_repartition(named, keys, values))
        return KGroupedTable(self.graph, after, keys, values)

    def suppress(self, suppressed: Suppressed, *, name: str | None = None) -> KTable:
        """Holds updates back: until their window closes, or for a while."""
        grace_ms = 0
        if suppressed.wait_ms is None:
            found = self._grace_ms(self.node)
            if found is None:
                raise TopologyError(
                    "until_window_closes needs a windowed table; for others use until_time_limit"
                )
            grace_ms = found
        base = name or self.graph.new_name("KTABLE-SUPPRESS")
        spec = StoreSpec(f"{base}-store", StoreKind.SUPPRESSION, self.key, self.value)
        store = self.graph.add_store(spec)
        self.graph.ask_for_old_values(self.node, force=True)
        operator = Suppress(store, suppressed, grace_ms)
        node = self.graph.add(base, operator, [self.node], [store])
        return KTable(self.graph, node, self.key, self.value)

    # --- joins -----------------------------------------------------------------------------------

    def join(
        self,
        other: KTable,
        joiner: Callable[[Any, Any], Any],
        *,
        on: Callable[..., Any] | None = None,
        value: SerdeChoice | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """Keys both tables have. `on(value)` gives the other table's key instead: a foreign key."""
        return self._joined(JoinKind.INNER, other, table_joins.How(joiner, on, store, name), value)

    def left_join(
        self,
        other: KTable,
        joiner: Callable[[Any, Any], Any],
        *,
        on: Callable[..., Any] | None = None,
        value: SerdeChoice | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """All keys of this table, with None where the other has nothing."""
        return self._joined(JoinKind.LEFT, other, table_joins.How(joiner, on, store, name), value)

    def outer_join(
        self,
        other: KTable,
        joiner: Callable[[Any, Any], Any],
        *,
        value: SerdeChoice | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """All keys of both tables."""
        return self._joined(
            JoinKind.OUTER, other, table_joins.How(joiner, None, store, name), value
        )

    # --- drawing ---------------------------------------------------------------------------------

    def _joined(
        self, kind: JoinKind, other: KTable, how: table_joins.How, value: SerdeChoice | None
    ) -> KTable:
        if not isinstance(other, KTable):
            raise TopologyError(f"a table is joined with a table, not a {type(other).__name__}")
        if other.graph is not self.graph:
            raise TopologyError("both sides of a join must come from one builder")
        serde = self.graph.value_serde(value)
        if how.on is not None:
            node = table_joins.on_foreign_key(
                self, other, how, serde, left_join=kind is JoinKind.LEFT
            )
        else:
            node = table_joins.on_key(self, other, how, serde, kind)
        return KTable(self.graph, node, self.key, serde)

    def _filtered(
        self, predicate: Function, negated: bool, store: str | None, name: str | None
    ) -> KTable:
        # where the parent keeps a store anyway, its old values spare needless deletions
        sends_old = self.graph.ask_for_old_values(self.node, force=False)
        operator = TableFilter(checked_function(predicate), negated, store, sends_old)
        return self._derived("KTABLE-FILTER", operator, self.value, name)

    def _derived(
        self, prefix: str, operator: TableFilter | TableMapValues, value: Serde, name: str | None
    ) -> KTable:
        named = name or self.graph.new_name(prefix)
        stores = []
        if operator.store is not None:
            spec = table_store(operator.store, self, value)
            stores = [self.graph.add_store(spec)]
        node = self.graph.add(named, operator, [self.node], stores)
        return KTable(self.graph, node, self.key, value)

    def _grace_ms(self, name: str) -> int | None:
        """How long after its end a window of this table can still change."""
        node = self.graph.nodes[name]
        operator: Operator = node.operator
        if isinstance(operator, WindowAggregate):
            windows = operator.windows
            gap_ms = windows.gap_ms if isinstance(windows, SessionWindows) else 0
            return windows.grace_ms + gap_ms
        if isinstance(operator, SelectKey | MapValues | TableGroup):
            return None
        graces = [self._grace_ms(parent) for parent in node.parents]
        known = [grace for grace in graces if grace is not None]
        return max(known) if known else None


def table_store(name: str, table: KTable, value: Serde) -> StoreSpec:
    """The store of a table derived from another one."""
    return StoreSpec(name, StoreKind.TABLE, table.key, value)
