"""A topology of the semantics battery under other names, so that many share a broker or a task."""

from dataclasses import fields, replace
from typing import Any

from ottla.streams import Topology
from ottla.streams.operators import Process, Source
from ottla.streams.topology import Node, split


def prefixed(topology: Topology, prefix: str) -> Topology:
    """The same topology with `prefix` before all names: topics, stores, nodes and joins.

    Only stores that processors of the user's own ask for keep their names.
    """
    users = [node for node in topology.nodes if isinstance(node.operator, Process)]
    kept = {store for node in users for store in node.stores}

    def named(name: str) -> str:
        return name if name in kept else prefix + name

    def renamed(operator: Any) -> Any:
        """All texts of an operator are names of something."""
        if isinstance(operator, Source):
            return replace(operator, topics=tuple(map(named, operator.topics)))
        values = {one.name: getattr(operator, one.name) for one in fields(operator)}
        names = {field: named(text) for field, text in values.items() if isinstance(text, str)}
        return replace(operator, **names)

    def node_renamed(node: Node) -> Node:
        return Node(
            named(node.name),
            renamed(node.operator),
            tuple(map(named, node.parents)),
            tuple(map(named, node.stores)),
        )

    nodes = tuple(map(node_renamed, topology.nodes))
    stores = tuple(replace(store, name=named(store.name)) for store in topology.stores)
    return replace(
        topology,
        nodes=nodes,
        stores=stores,
        internal_topics=tuple(
            replace(topic, name=named(topic.name)) for topic in topology.internal_topics
        ),
        global_tables=tuple(
            replace(one, topic=named(one.topic), store=named(one.store), source=renamed(one.source))
            for one in topology.global_tables
        ),
        copartitioned=tuple(frozenset(map(named, group)) for group in topology.copartitioned),
        subtopologies=split(nodes, stores),
    )
