"""Many topologies of the semantics battery as one application of few queries.

One query has all topologies without any state, another one those with state. A query runs its
sub-topologies side by side in one task of the engine and reads the repartition topics it writes, so
micro-batches are the same in every run. What runs side by side shares nothing but the newest
timestamp of the task, which only processors of the user's own can see: those run alone. All topics
have one partition.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from ottla.streams import Topology
from ottla.streams.operators import Process
from ottla.streams.spark.kept_stores import has_state
from ottla.streams.topology import Subtopology, SubtopologyId


def united(topologies: Iterable[Topology]) -> Topology:
    """One topology that does what all of them do; no name may be there twice."""
    whole = tuple(topologies)
    return Topology(
        nodes=tuple(chain.from_iterable(one.nodes for one in whole)),
        stores=tuple(chain.from_iterable(one.stores for one in whole)),
        internal_topics=tuple(
            replace(topic, partitions=1) for one in whole for topic in one.internal_topics
        ),
        global_tables=tuple(chain.from_iterable(one.global_tables for one in whole)),
        copartitioned=tuple(chain.from_iterable(one.copartitioned for one in whole)),
        subtopologies=tuple(
            _subtopology(SubtopologyId(number), parts)
            for number, parts in enumerate(_groups(whole))
        ),
    )


def can_unite(topology: Topology) -> bool:
    return not any(isinstance(node.operator, Process) for node in topology.nodes)


def _groups(topologies: Iterable[Topology]) -> Iterator[list[Topology]]:
    """What goes into one query."""
    together: dict[bool, list[Topology]] = {False: [], True: []}
    for one in topologies:
        assert can_unite(one)
        together[any(map(has_state, one.subtopologies))].append(one)
    return filter(None, together.values())


def _subtopology(number: SubtopologyId, parts: list[Topology]) -> Subtopology:
    return Subtopology(
        number,
        tuple(node for one in parts for node in one.nodes),
        tuple(store for one in parts for store in one.stores),
    )
