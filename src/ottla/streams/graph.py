"""A topology while it is being drawn: nodes get names and may still change their mind.

Knows how a node learns that somebody below needs old values, or needs to look a table up: both can
make a table keep its store which would not have needed one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ottla.streams.failures import TopologyError
from ottla.streams.operators import (
    Aggregate,
    DropNullKeys,
    Operator,
    Sink,
    Source,
    Suppress,
    TableAggregate,
    TableFilter,
    TableJoin,
    TableJoinMerge,
    TableMapValues,
    TablePassThrough,
    TableSource,
    WindowAggregate,
)
from ottla.streams.serdes import NamedSerde, Serde, SerdeChoice, serde_for
from ottla.streams.store_spec import StoreSpec
from ottla.streams.topology import GlobalTable, InternalTopic, Node, Topology, split

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,200}")


@dataclass(frozen=True, slots=True)
class Repartition:
    """How records go through a topic of the application's own."""

    name: str
    key: Serde
    value: Serde
    drops_null_keys: bool = False
    partitions: int | None = None
    partitioner: Callable[[Any, Any, int], int] | None = None


@dataclass(slots=True)
class Graph:
    """All that was drawn so far, by name."""

    nodes: dict[str, Node] = field(default_factory=dict)
    stores: dict[str, StoreSpec] = field(default_factory=dict)
    internal_topics: dict[str, InternalTopic] = field(default_factory=dict)
    global_tables: list[GlobalTable] = field(default_factory=list)
    copartitioned: list[frozenset[str]] = field(default_factory=list)
    default_key: Serde = field(default_factory=lambda: NamedSerde("str"))
    default_value: Serde = field(default_factory=lambda: NamedSerde("json"))
    index: int = 0

    def new_name(self, prefix: str) -> str:
        """A name nobody has, as Kafka Streams makes them."""
        name = f"{prefix}-{self.index:010d}"
        self.index += 1
        return name

    def key_serde(self, choice: SerdeChoice | None) -> Serde:
        """The chosen serde, or what the builder has for keys."""
        return self.default_key if choice is None else serde_for(choice)

    def value_serde(self, choice: SerdeChoice | None) -> Serde:
        """The chosen serde, or what the builder has for values."""
        return self.default_value if choice is None else serde_for(choice)

    def add(
        self,
        name: str,
        operator: Operator,
        parents: Iterable[str] = (),
        stores: Iterable[str] = (),
    ) -> str:
        """Draws a node; its name comes back."""
        check_name(name, "node")
        if name in self.nodes:
            raise TopologyError(f"there are two nodes named {name!r}; give one another name")
        used = tuple(dict.fromkeys(stores))
        for store in used:
            if store not in self.stores:
                raise TopologyError(f"{name} uses the store {store!r}, which nobody added")
        self.nodes[name] = Node(name, operator, tuple(parents), used)
        return name

    def add_store(self, spec: StoreSpec) -> str:
        check_name(spec.name, "store")
        if spec.name in self.stores:
            raise TopologyError(f"there are two stores named {spec.name!r}; rename one")
        self.stores[spec.name] = spec
        return spec.name

    def change(self, name: str, operator: Operator) -> None:
        self.nodes[name] = replace(self.nodes[name], operator=operator)

    # --- what tables are asked for ---------------------------------------------------------------

    def ask_for_old_values(self, name: str, *, force: bool) -> bool:
        """Makes a table send old values; `force` even if it must keep a store for that."""
        operator = self.nodes[name].operator
        match operator:
            case TableSource():
                if not force and not operator.materialized:
                    return False
                self.change(name, replace(operator, sends_old=True))
                self._materialize(name)
                return True
            case TableFilter(store=None) | TableMapValues(store=None):
                if self.ask_for_old_values(self.nodes[name].parents[0], force=force):
                    self.change(name, replace(operator, sends_old=True))
                    return True
                return operator.sends_old
            case TableJoinMerge():
                self.change(name, replace(operator, sends_old=True))
                self._ask_join_sides(name, operator)
                return True
            case TablePassThrough():
                for parent in self.nodes[name].parents:
                    self.ask_for_old_values(parent, force=force)
                return True
            case Suppress():
                return self.ask_for_old_values(self.nodes[name].parents[0], force=force)
            case Aggregate() | WindowAggregate() | TableAggregate():
                self.change(name, replace(operator, sends_old=True))
                return True
            case TableFilter() | TableMapValues():  # with a store of their own
                self.change(name, replace(operator, sends_old=True))
                return True
        raise AssertionError(operator)

    def _ask_join_sides(self, name: str, merge: TableJoinMerge) -> None:
        for side in self.nodes[name].parents:
            operator = self.nodes[side].operator
            assert isinstance(operator, TableJoin)
            self.change(side, replace(operator, sends_old=True))
        self.ask_for_old_values(merge.left, force=True)
        self.ask_for_old_values(merge.right, force=True)

    def stores_to_look_up(self, name: str) -> tuple[str, ...]:
        """The stores in which a table's present values are found; sees to it that they are kept."""
        operator = self.nodes[name].operator
        match operator:
            case TableSource():
                self._materialize(name)
                return (operator.store,)
            case TableFilter(store=None) | TableMapValues(store=None):
                return self.stores_to_look_up(self.nodes[name].parents[0])
            case TableJoinMerge(store=None):
                return (
                    *self.stores_to_look_up(operator.left),
                    *self.stores_to_look_up(operator.right),
                )
            case Suppress():
                above = self.stores_to_look_up(self.nodes[name].parents[0])
                return (operator.store, *above)
        store = getattr(operator, "store", None)
        assert store is not None, operator
        return (store,)

    def _materialize(self, name: str) -> None:
        node = self.nodes[name]
        assert isinstance(node.operator, TableSource)
        store = node.operator.store
        operator = replace(node.operator, materialized=True)
        self.nodes[name] = replace(
            node, operator=operator, stores=tuple(dict.fromkeys((*node.stores, store)))
        )

    # --- topics between sub-topologies -----------------------------------------------------------

    def add_internal_topic(self, topic: InternalTopic) -> None:
        check_name(topic.name, "internal topic")
        if topic.name in self.internal_topics:
            raise TopologyError(
                f"two operators would write the internal topic {topic.name!r}; name one otherwise"
            )
        self.internal_topics[topic.name] = topic

    def through_topic(self, parent: str, how: Repartition) -> str:
        """Sends records through a topic of our own; the source after it comes back."""
        topic = f"{how.name}-repartition"
        self.add_internal_topic(InternalTopic(topic, how.partitions))
        if how.drops_null_keys:
            parent = self.add(f"{how.name}-repartition-filter", DropNullKeys(), [parent])
        sink = Sink(topic, how.key, how.value, internal=True, partitioner=how.partitioner)
        self.add(f"{how.name}-repartition-sink", sink, [parent])
        source = Source((topic,), how.key, how.value, internal=True)
        return self.add(f"{how.name}-repartition-source", source)

    def topics_above(self, name: str) -> frozenset[str]:
        """The topics whose partitions decide where a node's records are."""
        node = self.nodes[name]
        if isinstance(node.operator, Source):
            return frozenset(node.operator.topics)
        return frozenset().union(*(self.topics_above(parent) for parent in node.parents))

    def copartition(self, *names: str) -> None:
        """Remembers that the topics above these nodes must have equally many partitions."""
        self.copartitioned.append(frozenset().union(*(self.topics_above(name) for name in names)))

    def freeze(self) -> Topology:
        """The finished topology."""
        if not any(isinstance(node.operator, Source) for node in self.nodes.values()):
            raise TopologyError("the topology reads no topic; begin with builder.stream or .table")
        self._check_topics()
        used = {store for node in self.nodes.values() for store in node.stores}
        used |= {table.store for table in self.global_tables}
        nodes = tuple(self.nodes.values())
        stores = tuple(store for store in self.stores.values() if store.name in used)
        return Topology(
            nodes,
            stores,
            tuple(self.internal_topics.values()),
            tuple(self.global_tables),
            tuple(dict.fromkeys(group for group in self.copartitioned if len(group) > 1)),
            split(nodes, stores),
        )

    def _check_topics(self) -> None:
        """A topic has one reader, for a task has one position in it."""
        readers: dict[str, str] = {}
        globals_ = {table.topic for table in self.global_tables}
        for node in self.nodes.values():
            if isinstance(node.operator, Source):
                for topic in node.operator.topics:
                    if topic in readers or topic in globals_:
                        raise TopologyError(
                            f"the topic {topic!r} is read twice; read it once and use the stream,"
                            " or table, in both places"
                        )
                    readers[topic] = node.name


def check_name(name: str, what: str) -> None:
    """Refuses names that could not be part of a topic's name."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise TopologyError(
            f"{name!r} cannot name a {what}: use letters, digits, '.', '_' and '-', at most 200"
        )
