"""How many partitions an application's topics have, and where its tasks run. Pure decisions."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.streams.failures import TopologyError
from ottla.streams.topology import Subtopology, Topology


def partition_counts(topology: Topology, inputs: Mapping[str, int]) -> dict[str, int]:
    """Counts for all topics that are read, internal ones under their short names.

    An internal topic has what it was given; else as many as the topics it is joined with; else as
    many as the most that the sub-topology writing it reads.
    """
    counts: dict[str, int] = {}
    for topic in topology.input_topics():
        if topic not in inputs:
            raise TopologyError(f"the topic {topic!r} is read but does not exist")
        counts[topic] = inputs[topic]
    fixed = {one.name: one.partitions for one in topology.internal_topics}
    counts.update({name: count for name, count in fixed.items() if count is not None})
    missing = [name for name, count in fixed.items() if count is None]
    for _ in range(len(missing) + 1):
        _fill(topology, counts, missing)
        missing = [name for name in missing if name not in counts]
    if missing:
        raise TopologyError(f"nothing says how many partitions {missing[0]!r} should have")
    _check_copartitions(topology, counts, fixed)
    return counts


def task_count(subtopology: Subtopology, counts: Mapping[str, int]) -> int:
    """How many tasks a sub-topology has: one for each partition number of what it reads."""
    return max(counts[topic] for topic in subtopology.topics())


def _fill(topology: Topology, counts: dict[str, int], missing: list[str]) -> None:
    for name in missing:
        partners = [group - {name} for group in topology.copartitioned if name in group]
        outside = [
            counts[topic]
            for group in partners
            for topic in group
            if topic in counts and not (topology.is_internal(topic) and topic in missing)
        ]
        found = outside or _counts_of_writers(topology, counts, name)
        if found:
            counts[name] = max(found)


def _counts_of_writers(topology: Topology, counts: Mapping[str, int], name: str) -> list[int]:
    """What the writers of an internal topic read, once all of it is known."""
    found: list[int] = []
    for part in topology.subtopologies:
        if any(sink.internal and sink.topic == name for _, sink in part.sinks()):
            read = [counts.get(topic) for topic in part.topics()]
            found += [count for count in read if count is not None]
            if None in read:
                return []
    return found


def _check_copartitions(
    topology: Topology, counts: dict[str, int], fixed: Mapping[str, int | None]
) -> None:
    """Makes internal topics of a group as wide as its widest; refuses differing outside ones."""
    for group in topology.copartitioned:
        settled = {topic: counts[topic] for topic in group if fixed.get(topic, 1) is not None}
        if len(set(settled.values())) > 1:
            texts = ", ".join(f"{topic!r} has {settled[topic]}" for topic in sorted(settled))
            raise TopologyError(
                f"topics that are joined need the same number of partitions: {texts};"
                " use repartition(partitions=...) on one side"
            )
        widest = max(settled.values() or (counts[topic] for topic in group))
        for topic in group - settled.keys():
            counts[topic] = widest
