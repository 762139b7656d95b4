"""Joins of tables by the same key: each side's change is joined with the other's present value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.streams.engine.changes import Change
from ottla.streams.engine.progress import UNKNOWN
from ottla.streams.engine.records import Headers
from ottla.streams.engine.wiring import DropReason, Forward, Lookup, Wiring
from ottla.streams.operators import JoinKind, TableJoin, TableJoinMerge

Pair = Callable[[Any, Any], Any]


def pairing(joiner: Callable[[Any, Any], Any], kind: JoinKind) -> Pair:
    """The joined value of a left and a right one, None where the kind of join has no row."""

    def inner(left: Any, right: Any) -> Any:
        return None if left is None or right is None else joiner(left, right)

    def left_only(left: Any, right: Any) -> Any:
        return None if left is None else joiner(left, right)

    def outer(left: Any, right: Any) -> Any:
        return None if left is None and right is None else joiner(left, right)

    return {JoinKind.INNER: inner, JoinKind.LEFT: left_only, JoinKind.OUTER: outer}[kind]


def table_join(operator: TableJoin, wiring: Wiring) -> Forward:
    lookup, forward = wiring.lookup(operator.other), wiring.forward
    pair, sends_old = pairing(operator.joiner, operator.kind), operator.sends_old
    is_left = operator.is_left
    needs_other = operator.kind is JoinKind.INNER or (
        operator.kind is JoinKind.LEFT and not is_left
    )

    def paired(this: Any, other: Any) -> Any:
        return pair(this, other) if is_left else pair(other, this)

    def joined(key: Any, change: Change, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            wiring.drop(DropReason.NULL_KEY)
            return
        found = lookup(key)
        other = None if found is None else found[0]
        if found is None or other is None:
            # without a partner there was no row and is none, or nothing changes
            if needs_other or (change.new is None and change.old is None):
                return
        else:
            timestamp_ms = max(timestamp_ms, found[1])
        old = paired(change.old, other) if sends_old else None
        forward(key, Change(paired(change.new, other), old), timestamp_ms, headers)

    return joined


def table_join_merge(operator: TableJoinMerge, wiring: Wiring) -> Forward:
    forward, sends_old = wiring.forward, operator.sends_old
    store = None if operator.store is None else wiring.stores.table(operator.store)

    def merged(key: Any, change: Change, timestamp_ms: int, headers: Headers) -> None:
        if store is not None:
            store.put(key, change.new, timestamp_ms)
        forward(key, change if sends_old else Change(change.new), timestamp_ms, headers)

    return merged


def joined_lookup(operator: TableJoinMerge, left: Lookup, right: Lookup) -> Lookup:
    """Looks a joined table up that keeps no store of its own."""
    pair = pairing(operator.joiner, operator.kind)

    def look_up(key: Any) -> tuple[Any, int] | None:
        left_value, left_ms = left(key) or (None, UNKNOWN)
        right_value, right_ms = right(key) or (None, UNKNOWN)
        value = pair(left_value, right_value)
        return None if value is None else (value, max(left_ms, right_ms))

    return look_up
