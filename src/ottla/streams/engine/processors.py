"""The table from what a node does to how it is done, and from a table's node to its lookup.

Nodes that are part of a chain are in `fusing.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.streams.engine import (
    aggregates,
    foreign_joins,
    stateless,
    stream_joins,
    table_joins,
    tables,
)
from ottla.streams.engine.sessions import SessionAggregate
from ottla.streams.engine.sliding import SlidingAggregate
from ottla.streams.engine.suppression import Suppression, suppressed_lookup
from ottla.streams.engine.wiring import Forward, Lookup, Wiring
from ottla.streams.operators import (
    Aggregate,
    AnswerSubscribers,
    FlatMap,
    FlatMapValues,
    Map,
    PassThrough,
    Peek,
    RememberForJoin,
    ResolveAnswers,
    Sink,
    Source,
    StreamGlobalJoin,
    StreamJoin,
    StreamTableJoin,
    Subscribe,
    Subscriptions,
    Suppress,
    TableAggregate,
    TableFilter,
    TableGroup,
    TableJoin,
    TableJoinMerge,
    TableMapValues,
    TablePassThrough,
    TableSource,
    TableToStream,
    WindowAggregate,
)
from ottla.streams.store_spec import StoreKind
from ottla.streams.windows import SessionWindows, SlidingWindows

Make = Callable[[Any, Wiring], Forward]


def _window_aggregate(operator: WindowAggregate, wiring: Wiring) -> Forward:
    if isinstance(operator.windows, SessionWindows):
        return SessionAggregate(operator, wiring).process
    if isinstance(operator.windows, SlidingWindows):
        return SlidingAggregate(operator, wiring).process
    return aggregates.TimeWindowAggregate(operator, wiring).process


def _stream_join(operator: StreamJoin, wiring: Wiring) -> Forward:
    return stream_joins.StreamJoinSide(operator, wiring).process


def _suppress(operator: Suppress, wiring: Wiring) -> Forward:
    return Suppression(operator, wiring).process


def _source(_: Source, wiring: Wiring) -> Forward:
    return wiring.forward


MAKERS: Final[dict[type, Make]] = {
    Source: _source,
    Sink: stateless.sink,
    Map: stateless.map_records,
    FlatMap: stateless.flat_map,
    FlatMapValues: stateless.flat_map_values,
    Peek: stateless.peek,
    PassThrough: stateless.pass_through,
    TableToStream: stateless.table_to_stream,
    Aggregate: aggregates.aggregate,
    WindowAggregate: _window_aggregate,
    TableSource: tables.table_source,
    TableFilter: tables.table_filter,
    TableMapValues: tables.table_map_values,
    TablePassThrough: tables.table_pass_through,
    TableGroup: tables.table_group,
    TableAggregate: tables.table_aggregate,
    Suppress: _suppress,
    RememberForJoin: stream_joins.remember_for_join,
    StreamJoin: _stream_join,
    StreamTableJoin: stream_joins.stream_table_join,
    StreamGlobalJoin: stream_joins.stream_global_join,
    TableJoin: table_joins.table_join,
    TableJoinMerge: table_joins.table_join_merge,
    Subscribe: foreign_joins.subscribe,
    Subscriptions: foreign_joins.subscriptions,
    AnswerSubscribers: foreign_joins.answer_subscribers,
    ResolveAnswers: foreign_joins.resolve_answers,
}


def lookup_of(name: str, wiring: Wiring) -> Lookup:
    """How a table's present value is found: in its store, or from its parents'."""
    node = wiring.topology.node(name)
    match node.operator:
        case TableFilter(store=None) as filtering:
            passes = tables.filtered_value(filtering)
            return _derived(lookup_of(node.parents[0], wiring), passes)
        case TableMapValues(store=None) as mapping:
            mapped = tables.mapped_value(mapping)
            return _derived(lookup_of(node.parents[0], wiring), mapped)
        case TableJoinMerge(store=None) as merge:
            left, right = lookup_of(merge.left, wiring), lookup_of(merge.right, wiring)
            return table_joins.joined_lookup(merge, left, right)
        case Suppress() as suppress:
            return suppressed_lookup(suppress, wiring, lookup_of(node.parents[0], wiring))
    store = getattr(node.operator, "store", None)
    assert isinstance(store, str), node.operator
    return _stored(store, wiring)


def _stored(name: str, wiring: Wiring) -> Lookup:
    store = wiring.stores.typed(name)
    match store.spec.kind:
        case StoreKind.WINDOW:
            return lambda windowed: store.get(windowed.key, windowed.start_ms)
        case StoreKind.SESSION:

            def session(windowed: Any) -> tuple[Any, int] | None:
                value = store.get(windowed)
                return None if value is None else (value, windowed.end_ms)

            return session
    found: Lookup = store.get
    return found


def _derived(parent: Lookup, derive: Callable[[Any, Any], Any]) -> Lookup:
    def look_up(key: Any) -> tuple[Any, int] | None:
        found = parent(key)
        if found is None:
            return None
        value = derive(key, found[0])
        return None if value is None else (value, found[1])

    return look_up
