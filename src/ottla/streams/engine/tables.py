"""Nodes that carry a table's changes, and looking a table's present value up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.streams.engine.changes import Change
from ottla.streams.engine.functions import Folding, of_value, predicate
from ottla.streams.engine.records import Headers
from ottla.streams.engine.table_store import TableStore
from ottla.streams.engine.wiring import DropReason, Forward, Wiring
from ottla.streams.operators import (
    Count,
    Fold,
    TableAggregate,
    TableFilter,
    TableGroup,
    TableMapValues,
    TablePassThrough,
    TableSource,
)


def table_source(operator: TableSource, wiring: Wiring) -> Forward:
    """Without a store a change has no old value; the last offset wins, whatever its time."""
    forward = wiring.forward
    if not operator.materialized:

        def passed(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
            if key is None:
                wiring.drop(DropReason.NULL_KEY)
            else:
                forward(key, Change(value), timestamp_ms, headers)

        return passed
    store: TableStore = wiring.stores.typed(operator.store)
    sends_old = operator.sends_old

    def kept(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            wiring.drop(DropReason.NULL_KEY)
            return
        before = store.get(key) if sends_old else None
        store.put(key, value, timestamp_ms)
        forward(key, Change(value, before and before[0]), timestamp_ms, headers)

    return kept


def table_filter(operator: TableFilter, wiring: Wiring) -> Forward:
    forward, sends_old = wiring.forward, operator.sends_old
    passes = filtered_value(operator)
    store = None if operator.store is None else wiring.stores.table(operator.store)

    def filtered(key: Any, change: Change, timestamp_ms: int, headers: Headers) -> None:
        new, old = passes(key, change.new), None
        if sends_old:
            old = passes(key, change.old) if store is None else _value(store, key)
            if old is None and new is None:
                return
        if store is not None:
            store.put(key, new, timestamp_ms)
        forward(key, Change(new, old), timestamp_ms, headers)

    return filtered


def filtered_value(operator: TableFilter) -> Callable[[Any, Any], Any]:
    """A value as it is behind the filter."""
    holds = predicate(operator.predicate, operator.negated)

    def passes(key: Any, value: Any) -> Any:
        return value if value is not None and holds(key, value) else None

    return passes


def table_map_values(operator: TableMapValues, wiring: Wiring) -> Forward:
    forward, sends_old = wiring.forward, operator.sends_old
    mapped = mapped_value(operator)
    store = None if operator.store is None else wiring.stores.table(operator.store)

    def changed(key: Any, change: Change, timestamp_ms: int, headers: Headers) -> None:
        new, old = mapped(key, change.new), None
        if sends_old:
            old = mapped(key, change.old) if store is None else _value(store, key)
        if store is not None:
            store.put(key, new, timestamp_ms)
        forward(key, Change(new, old), timestamp_ms, headers)

    return changed


def mapped_value(operator: TableMapValues) -> Callable[[Any, Any], Any]:
    """A value as it is behind the mapping; nothing stays nothing."""
    mapper = of_value(operator.mapper, operator.with_key)
    return lambda key, value: None if value is None else mapper(key, value)


def _value(store: TableStore, key: Any) -> Any:
    found = store.get(key)
    return found and found[0]


def table_pass_through(_: TablePassThrough, wiring: Wiring) -> Forward:
    return wiring.forward


def table_group(operator: TableGroup, wiring: Wiring) -> Forward:
    """A row that moves leaves its old group first, then enters the new one."""
    mapper, forward = operator.mapper, wiring.forward

    def pair(key: Any, value: Any) -> tuple[Any, Any] | None:
        if value is None:
            return None
        group, mapped = mapper(key, value)
        return None if group is None or mapped is None else (group, mapped)

    def grouped(key: Any, change: Change, timestamp_ms: int, headers: Headers) -> None:
        old, new = pair(key, change.old), pair(key, change.new)
        if old is not None and new is not None and old[0] == new[0]:
            forward(new[0], Change(new[1], old[1]), timestamp_ms, headers)
            return
        if old is not None:
            forward(old[0], Change(None, old[1]), timestamp_ms, headers)
        if new is not None:
            forward(new[0], Change(new[1], None), timestamp_ms, headers)

    return grouped


def table_aggregate(operator: TableAggregate, wiring: Wiring) -> Forward:
    forward, sends_old = wiring.forward, operator.sends_old
    store: TableStore = wiring.stores.typed(operator.store)
    folding, remove = Folding(operator.adding), _removing(operator)

    def aggregated(key: Any, change: Change, timestamp_ms: int, headers: Headers) -> None:
        found = store.get(key)
        result = before = found and found[0]
        if found is not None:
            if change.old is not None:
                result = remove(key, change.old, result)
            if change.old is not None or change.new is not None:
                timestamp_ms = max(timestamp_ms, found[1])
        if change.new is not None:
            result = folding.add(key, change.new, folding.begin() if result is None else result)
        store.put(key, result, timestamp_ms)
        forward(key, Change(result, before if sends_old else None), timestamp_ms, headers)

    return aggregated


def _removing(operator: TableAggregate) -> Callable[[Any, Any, Any], Any]:
    remove = operator.removing
    if isinstance(operator.adding, Count):
        return lambda _key, _value, result: result - 1
    assert remove is not None
    if isinstance(operator.adding, Fold):
        return remove
    return lambda _, value, result: remove(result, value)
