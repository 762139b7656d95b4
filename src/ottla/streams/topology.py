"""A finished topology: nodes, stores and internal topics as frozen data, cut into sub-topologies.

A sub-topology is what can run on one partition number alone: nodes that are connected by edges or
by a shared store. It ends where records go through a topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NewType

from ottla.streams.operators import Operator, Sink, Source
from ottla.streams.store_spec import StoreSpec

SubtopologyId = NewType("SubtopologyId", int)


@dataclass(frozen=True, slots=True)
class Node:
    """One step, what is done there, who feeds it and which stores it uses."""

    name: str
    operator: Operator
    parents: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A topic the application writes for itself, named without the application's id."""

    name: str
    partitions: int | None = None
    """As many as asked for; None: as many as its readers and writers need."""

    def full_name(self, app_id: str) -> str:
        """Its name in the cluster."""
        return f"{app_id}-{self.name}"


@dataclass(frozen=True, slots=True)
class GlobalTable:
    """A topic of which every task knows every record."""

    topic: str
    store: str
    source: Source


@dataclass(frozen=True, slots=True)
class Subtopology:
    """Nodes in the order they were drawn: parents before children."""

    id: SubtopologyId
    nodes: tuple[Node, ...]
    stores: tuple[StoreSpec, ...]

    def sources(self) -> Iterator[tuple[Node, Source]]:
        return ((node, one) for node in self.nodes if isinstance(one := node.operator, Source))

    def sinks(self) -> Iterator[tuple[Node, Sink]]:
        return ((node, one) for node in self.nodes if isinstance(one := node.operator, Sink))

    def topics(self) -> tuple[str, ...]:
        """What it reads; internal topics under their short names."""
        return tuple(dict.fromkeys(topic for _, one in self.sources() for topic in one.topics))


@dataclass(frozen=True, slots=True)
class Topology:
    """What an application does, before anybody says where it runs."""

    nodes: tuple[Node, ...]
    stores: tuple[StoreSpec, ...]
    internal_topics: tuple[InternalTopic, ...] = ()
    global_tables: tuple[GlobalTable, ...] = ()
    copartitioned: tuple[frozenset[str], ...] = ()
    """Topics that must have the same number of partitions, for they are joined."""
    subtopologies: tuple[Subtopology, ...] = ()

    def node(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    def store(self, name: str) -> StoreSpec:
        return next(store for store in self.stores if store.name == name)

    def is_internal(self, topic: str) -> bool:
        return any(internal.name == topic for internal in self.internal_topics)

    def topic_name(self, topic: str, app_id: str) -> str:
        """A topic's name in the cluster, whether it is the application's own or not."""
        return f"{app_id}-{topic}" if self.is_internal(topic) else topic

    def input_topics(self) -> tuple[str, ...]:
        """What others write and this reads, global tables included."""
        read = [topic for one in self.subtopologies for topic in one.topics()]
        read += [table.topic for table in self.global_tables]
        return tuple(dict.fromkeys(topic for topic in read if not self.is_internal(topic)))

    def output_topics(self) -> tuple[str, ...]:
        """What this writes for others, as far as it is known before it runs."""
        sinks = [sink for one in self.subtopologies for _, sink in one.sinks()]
        named = [sink.topic for sink in sinks if isinstance(sink.topic, str) and not sink.internal]
        return tuple(dict.fromkeys(named))

    def changelog_topic(self, store: str, app_id: str) -> str:
        return f"{app_id}-{store}-changelog"

    def __str__(self) -> str:
        from ottla.streams.drawing import description

        return description(self)

    def to_mermaid(self) -> str:
        """The graph in Mermaid's language."""
        from ottla.streams.drawing import mermaid

        return mermaid(self)

    def to_dot(self) -> str:
        """The graph in Graphviz's language."""
        from ottla.streams.drawing import dot

        return dot(self)


def split(nodes: Iterable[Node], stores: Iterable[StoreSpec]) -> tuple[Subtopology, ...]:
    """The nodes cut into sub-topologies, in the order of their first source."""
    nodes, stores = tuple(nodes), tuple(stores)
    shared = {store.name for store in stores if not store.is_global}
    group: dict[str, int] = {}
    for number, node in enumerate(nodes):
        group[node.name] = number
        touched = [group[parent] for parent in node.parents]
        touched += [
            group[other.name]
            for other in nodes[:number]
            if shared.intersection(other.stores, node.stores)
        ]
        _unite(group, {*touched, number})
    order = dict.fromkeys(group.values())
    return tuple(
        _subtopology(SubtopologyId(index), [n for n in nodes if group[n.name] == number], stores)
        for index, number in enumerate(order)
    )


def _unite(group: dict[str, int], numbers: set[int]) -> None:
    least = min(numbers)
    for name, number in group.items():
        if number in numbers:
            group[name] = least


def _subtopology(
    number: SubtopologyId, nodes: list[Node], stores: tuple[StoreSpec, ...]
) -> Subtopology:
    used = {name for node in nodes for name in node.stores}
    return Subtopology(number, tuple(nodes), tuple(store for store in stores if store.name in used))
