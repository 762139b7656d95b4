"""A topology as text and as a graph to look at."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.streams.operators import Sink, Source
from ottla.streams.topology import Node, Subtopology, Topology


def description(topology: Topology) -> str:
    """What `print(topology)` shows: sub-topologies, their nodes, what each feeds and keeps."""
    lines = ["Topologies:"]
    for part in topology.subtopologies:
        lines.append(f"  Sub-topology {part.id}")
        lines += [f"    {line}" for node in part.nodes for line in _described(node, part)]
    lines += [
        f"  Global table {table.store} (topic: {table.topic})" for table in topology.global_tables
    ]
    return "\n".join(lines)


def _described(node: Node, part: Subtopology) -> Iterator[str]:
    kind = type(node.operator).__name__
    details = []
    if isinstance(node.operator, Source):
        details.append(f"topics: {', '.join(node.operator.topics)}")
    if isinstance(node.operator, Sink):
        details.append(f"topic: {_topic(node.operator)}")
    if node.stores:
        details.append(f"stores: {', '.join(node.stores)}")
    yield f"{kind} {node.name}" + (f" ({'; '.join(details)})" if details else "")
    children = [child.name for child in part.nodes if node.name in child.parents]
    if children:
        yield f"  --> {', '.join(children)}"


def _topic(sink: Sink) -> str:
    return sink.topic if isinstance(sink.topic, str) else "chosen for each record"


def mermaid(topology: Topology) -> str:
    """The graph in Mermaid's language: topics are stadiums, stores cylinders."""
    ids = _Ids()
    lines = ["graph TD"]
    for part in topology.subtopologies:
        lines.append(f'  subgraph s{part.id}["sub-topology {part.id}"]')
        lines += [f'    {ids[node.name]}["{node.name}"]' for node in part.nodes]
        lines += [f'    {ids["store " + one.name]}[("{one.name}")]' for one in part.stores]
        lines.append("  end")
    lines += [f'  {ids["topic " + topic]}(["{topic}"])' for topic in _topics(topology)]
    lines += [f"  {ids[one]} {arrow} {ids[other]}" for one, arrow, other in _edges(topology)]
    return "\n".join(lines)


def dot(topology: Topology) -> str:
    """The graph in Graphviz's language."""
    lines = ["digraph topology {", "  rankdir=TB; node [shape=box];"]
    for part in topology.subtopologies:
        lines.append(f'  subgraph cluster_{part.id} {{ label="sub-topology {part.id}";')
        lines += [f'    "{node.name}";' for node in part.nodes]
        lines += [
            f'    "store {one.name}" [shape=cylinder, label="{one.name}"];' for one in part.stores
        ]
        lines.append("  }")
    lines += [f'  "topic {topic}" [shape=oval, label="{topic}"];' for topic in _topics(topology)]
    for one, arrow, other in _edges(topology):
        style = " [dir=none, style=dashed]" if arrow == "-.-" else ""
        lines.append(f'  "{one}" -> "{other}"{style};')
    return "\n".join([*lines, "}"])


def _topics(topology: Topology) -> list[str]:
    topics = [topic for part in topology.subtopologies for topic in part.topics()]
    topics += [_topic(sink) for part in topology.subtopologies for _, sink in part.sinks()]
    return list(dict.fromkeys(topics))


def _edges(topology: Topology) -> Iterator[tuple[str, str, str]]:
    for node in topology.nodes:
        if isinstance(node.operator, Source):
            for topic in node.operator.topics:
                yield f"topic {topic}", "-->", node.name
        for parent in node.parents:
            yield parent, "-->", node.name
        for store in node.stores:
            if not topology.store(store).is_global:
                yield node.name, "-.-", f"store {store}"
        if isinstance(node.operator, Sink):
            yield node.name, "-->", f"topic {_topic(node.operator)}"


class _Ids:
    """Short ids for long names, since Mermaid reads some characters of a name as its own."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        return self._ids.setdefault(name, f"n{len(self._ids)}")
