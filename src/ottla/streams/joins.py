"""Drawing the joins of streams: which nodes and stores a join is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.streams.expressions import checked_function
from ottla.streams.failures import TopologyError
from ottla.streams.graph import Graph
from ottla.streams.operators import (
    Function,
    JoinKind,
    PassThrough,
    RememberForJoin,
    StreamGlobalJoin,
    StreamJoin,
    StreamTableJoin,
)
from ottla.streams.serdes import NamedSerde
from ottla.streams.store_spec import StoreKind, StoreSpec
from ottla.streams.windows import JoinWindows

if TYPE_CHECKING:
    from ottla.streams.global_table import GlobalKTable
    from ottla.streams.stream import KStream
    from ottla.streams.table import KTable


@dataclass(frozen=True, slots=True)
class How:
    """What a join does with those it found, and with those it did not."""

    kind: JoinKind
    joiner: Callable[..., Any]
    with_key: bool
    name: str | None


def join_stream(
    stream: KStream,
    other: KStream | KTable | GlobalKTable,
    how: How,
    *,
    within: JoinWindows | None,
    on: Function | None,
) -> KStream:
    """The right join for what stands on the other side."""
    from ottla.streams.global_table import GlobalKTable
    from ottla.streams.stream import KStream
    from ottla.streams.table import KTable

    checked_function(how.joiner)
    if getattr(other, "graph", stream.graph) is not stream.graph:
        raise TopologyError("both sides of a join must come from one builder")
    if isinstance(other, KStream):
        if within is None:
            raise TopologyError("a stream is joined with a stream within a time: give within=")
        if on is not None:
            raise TopologyError("streams are joined by key; use select_key first, not on=")
        return _with_stream(stream, other, how, within)
    if within is not None:
        raise TopologyError("a table has a value at any time: leave within= away")
    if isinstance(other, GlobalKTable):
        return _with_global_table(stream, other, how, on)
    if isinstance(other, KTable):
        if on is not None:
            raise TopologyError("a table is joined by key; use select_key first, or a global table")
        return _with_table(stream, other, how)
    raise TopologyError(f"a stream cannot be joined with a {type(other).__name__}")


def _with_stream(left: KStream, right: KStream, how: How, windows: JoinWindows) -> KStream:
    from ottla.streams.stream import KStream

    graph = left.graph
    base = how.name or graph.new_name("KSTREAM-JOIN")
    left, right = left.settled(f"{base}-left"), right.settled(f"{base}-right")
    graph.copartition(left.node, right.node)
    stores = (f"{base}-left-store", f"{base}-right-store")
    for side, store in zip((left, right), stores, strict=True):
        spec = StoreSpec(
            store, StoreKind.JOIN_WINDOW, side.key, side.value, retention_ms=windows.retention_ms
        )
        graph.add_store(spec)
    pending = _pending_store(graph, base, how, left)
    remembered = [
        graph.add(f"{base}-{word}-window", RememberForJoin(store), [side.node], [store])
        for word, side, store in zip(("left", "right"), (left, right), stores, strict=True)
    ]
    parents = []
    for is_left in (True, False):
        outer = how.kind is JoinKind.OUTER or (is_left and how.kind is JoinKind.LEFT)
        other = stores[1] if is_left else stores[0]
        join = StreamJoin(base, other, how.joiner, windows, is_left, outer, how.with_key, pending)
        word = "left" if is_left else "right"
        used = [*stores, *([pending] if pending else [])]
        parents.append(graph.add(f"{base}-{word}", join, [remembered[not is_left]], used))
    node = graph.add(f"{base}-merge", PassThrough(), parents)
    return KStream(graph, node, left.key, graph.default_value)


def _pending_store(graph: Graph, base: str, how: How, left: KStream) -> str | None:
    if how.kind is JoinKind.INNER:
        return None
    spec = StoreSpec(f"{base}-pending", StoreKind.PENDING_JOIN, left.key, NamedSerde("bytes"))
    return graph.add_store(spec)


def _with_table(stream: KStream, table: KTable, how: How) -> KStream:
    from ottla.streams.stream import KStream

    graph = stream.graph
    base = how.name or graph.new_name(_prefix(how, "KSTREAM-JOIN", "KSTREAM-LEFTJOIN"))
    stream = stream.settled(f"{base}-stream")
    graph.copartition(stream.node, table.node)
    operator = StreamTableJoin(table.node, how.joiner, how.kind is JoinKind.LEFT, how.with_key)
    node = graph.add(base, operator, [stream.node], graph.stores_to_look_up(table.node))
    return KStream(graph, node, stream.key, graph.default_value)


def _with_global_table(
    stream: KStream, table: GlobalKTable, how: How, on: Function | None
) -> KStream:
    from ottla.streams.stream import KStream

    if on is None:
        raise TopologyError("a global table is joined by a key of your choice: give on=")
    graph = stream.graph
    base = how.name or graph.new_name(_prefix(how, "KSTREAM-JOIN", "KSTREAM-LEFTJOIN"))
    operator = StreamGlobalJoin(
        table.store, on, how.joiner, how.kind is JoinKind.LEFT, how.with_key
    )
    node = graph.add(base, operator, [stream.node], [table.store])
    return KStream(graph, node, stream.key, graph.default_value, stream.moved)


def _prefix(how: How, inner: str, left: str) -> str:
    if how.kind is JoinKind.OUTER:
        raise TopologyError("only a stream with a stream, or a table with a table, join outer")
    return left if how.kind is JoinKind.LEFT else inner
