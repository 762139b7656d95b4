"""Global tables in a Python process of Spark's: read once, then followed.

Every micro-batch begins by reading what was committed to the topic meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.streams.engine.global_tables import GlobalTableUpdater
from ottla.streams.engine.stores import MemoryStore, Store
from ottla.streams.spark.topic_follower import TopicFollower
from ottla.streams.store_spec import StoreSpec
from ottla.streams.topology import Topology


@dataclass(slots=True)
class _Followed:
    follower: TopicFollower
    store: MemoryStore = field(default_factory=MemoryStore)


_followed: dict[tuple[str, str, str], _Followed] = {}
"""By brokers, topic and store. A process runs one task at a time."""


def global_store(topology: Topology, spec: StoreSpec, kafka: Mapping[str, str]) -> Store:
    """The store of a global table, as new as its topic is now."""
    table = next(one for one in topology.global_tables if one.store == spec.name)
    name = (kafka["bootstrap.servers"], table.topic, spec.name)
    if name not in _followed:
        _followed[name] = _Followed(TopicFollower(table.topic, kafka))
    followed = _followed[name]
    updater = GlobalTableUpdater(table, spec, followed.store)
    updater.update(followed.follower.news())
    return followed.store
