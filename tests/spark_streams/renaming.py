"""A topology of the semantics battery under other topic names, so that many share a broker."""

from dataclasses import replace
from typing import Any

from ottla.streams import Topology
from ottla.streams.operators import Sink, Source
from ottla.streams.topology import split


def prefixed(topology: Topology, prefix: str) -> Topology:
    """The same topology with `prefix` before the names of all topics that are not its own."""

    def named(topic: str) -> str:
        return topic if topology.is_internal(topic) else prefix + topic

    def renamed(operator: Any) -> Any:
        if isinstance(operator, Source):
            return replace(operator, topics=tuple(named(one) for one in operator.topics))
        if isinstance(operator, Sink) and isinstance(operator.topic, str):
            return replace(operator, topic=named(operator.topic))
        return operator

    nodes = tuple(replace(node, operator=renamed(node.operator)) for node in topology.nodes)
    return replace(
        topology,
        nodes=nodes,
        global_tables=tuple(
            replace(one, topic=named(one.topic), source=renamed(one.source))
            for one in topology.global_tables
        ),
        copartitioned=tuple(frozenset(map(named, group)) for group in topology.copartitioned),
        subtopologies=split(nodes, topology.stores),
    )
