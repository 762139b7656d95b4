"""A topology of the semantics battery under other names, so that many share a broker or a task."""

from dataclasses import fields, replace
from typing import Any

from ottla.streams import Topology
from ottla.streams.operators import Source
from ottla.streams.topology import Node, split


def prefixed(topology: Topology, prefix: str, *, for_inputs: str | None = None) -> Topology:
    """The same topology with `prefix` before all names: topics, stores, nodes and joins.

    The topics it reads may get another one.
    """
    inputs = topology.input_topics()

    def named(name: str) -> str:
        return (prefix if for_inputs is None or name not in inputs else for_inputs) + name

    def renamed(operator: Any) -> Any:
        """All texts of an operator are names of something."""
        if isinstance(operator, Source):
            return replace(operator, topics=tuple(map(named, operator.topics)))
        texts = {one.name: getattr(operator, one.name) for one in fields(operator)}
        return replace(
            operator, **{name: named(one) for name, one in texts.items() if isinstance(one, str)}
        )

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
