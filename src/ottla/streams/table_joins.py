"""Drawing the joins of tables: by the same key, or by a foreign key through two topics.

A foreign-key join sends, for every row of the primary table, a subscription to where the foreign
row lives; there it is kept and answered, now and at each change of the foreign row; the answers
come back to where the primary row lives. A hash of the row tells answers that came too late.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.streams.engine.subscriptions import AnswerSerde, SubscriptionSerde, answer_partition
from ottla.streams.graph import Graph
from ottla.streams.operators import (
    AnswerSubscribers,
    JoinKind,
    PassThrough,
    ResolveAnswers,
    Sink,
    Source,
    Subscribe,
    Subscriptions,
    TableJoin,
    TableJoinMerge,
    TableSource,
)
from ottla.streams.serdes import NamedSerde, Serde
from ottla.streams.store_spec import StoreKind, StoreSpec
from ottla.streams.topology import InternalTopic

if TYPE_CHECKING:
    from ottla.streams.table import KTable


@dataclass(frozen=True, slots=True)
class How:
    """What a join does with the pairs it found, and where the result is kept."""

    joiner: Callable[[Any, Any], Any]
    on: Callable[..., Any] | None
    store: str | None
    name: str | None


def on_key(left: KTable, right: KTable, how: How, value: Serde, kind: JoinKind) -> str:
    """Draws a join by the same key; the joined table's node comes back."""
    graph = left.graph
    base = how.name or graph.new_name("KTABLE-MERGE")
    graph.copartition(left.node, right.node)
    if kind is not JoinKind.INNER:
        graph.ask_for_old_values(left.node, force=True)
    if kind is JoinKind.OUTER:
        graph.ask_for_old_values(right.node, force=True)
    sides = []
    for is_left, this, other in ((True, left, right), (False, right, left)):
        side = TableJoin(other.node, how.joiner, kind, is_left)
        stores = (*graph.stores_to_look_up(this.node), *graph.stores_to_look_up(other.node))
        word = "left" if is_left else "right"
        sides.append(graph.add(f"{base}-{word}", side, [this.node], stores))
    kept = []
    if how.store is not None:
        kept = [graph.add_store(StoreSpec(how.store, StoreKind.TABLE, left.key, value))]
    merge = TableJoinMerge(left.node, right.node, how.joiner, kind, how.store)
    return graph.add(base, merge, sides, kept)


def on_foreign_key(left: KTable, right: KTable, how: How, value: Serde, *, left_join: bool) -> str:
    """Draws a join by a foreign key; the joined table's node comes back."""
    graph = left.graph
    base = how.name or graph.new_name("KTABLE-FK-JOIN")
    assert how.on is not None
    graph.ask_for_old_values(right.node, force=True)
    graph.ask_for_old_values(left.node, force=True)
    subscribe = Subscribe(how.on, left.value, left_join)
    sender = graph.add(f"{base}-subscribe", subscribe, [left.node])
    asked = _topic(graph, f"{base}-subscription-registration", [sender], _asking(left, right))
    graph.copartition(asked, right.node)
    answerers = _answerers(base, asked, left, right)
    answered = _topic(graph, f"{base}-subscription-response", answerers, _answering(left, right))
    graph.copartition(answered, left.node)
    resolve = ResolveAnswers(left.node, how.joiner, left.value, left_join)
    stores = graph.stores_to_look_up(left.node)
    resolved = graph.add(f"{base}-resolve", resolve, [answered], stores)
    named = how.store or f"{base}-store"
    graph.add_store(StoreSpec(named, StoreKind.TABLE, left.key, value))
    result = TableSource(named, materialized=how.store is not None)
    return graph.add(f"{base}-result", result, [resolved], [named] if how.store else [])


def _answerers(base: str, asked: str, left: KTable, right: KTable) -> list[str]:
    """The two nodes that answer: those who ask now, and all who asked when a row changes."""
    graph = left.graph
    spec = StoreSpec(
        f"{base}-subscriptions", StoreKind.SUBSCRIPTION, NamedSerde("bytes"), NamedSerde("bytes")
    )
    store = graph.add_store(spec)
    kept = Subscriptions(store, right.node, right.key, left.key)
    looked_up = (store, *graph.stores_to_look_up(right.node))
    told = AnswerSubscribers(store, right.key, left.key)
    return [
        graph.add(f"{base}-subscriptions", kept, [asked], looked_up),
        graph.add(f"{base}-answer", told, [right.node], [store]),
    ]


def _asking(left: KTable, right: KTable) -> tuple[Serde, Serde, None]:
    return right.key, SubscriptionSerde(left.key), None


def _answering(left: KTable, right: KTable) -> tuple[Serde, Serde, Callable[[Any, Any, int], int]]:
    return left.key, AnswerSerde(right.value), answer_partition


def _topic(
    graph: Graph,
    name: str,
    parents: list[str],
    how: tuple[Serde, Serde, Callable[[Any, Any, int], int] | None],
) -> str:
    topic = f"{name}-topic"
    key, value, partitioner = how
    graph.add_internal_topic(InternalTopic(topic))
    merged = graph.add(f"{name}-merge", PassThrough(), parents) if len(parents) > 1 else parents[0]
    sink = Sink(topic, key, value, internal=True, partitioner=partitioner)
    graph.add(f"{name}-sink", sink, [merged])
    return graph.add(f"{name}-source", Source((topic,), key, value, internal=True))
