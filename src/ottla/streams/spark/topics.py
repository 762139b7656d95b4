"""The topics of an application: what it reads must be there, what is its own is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.clients.blocking.admin import Admin
from ottla.clients.topics import NewTopic
from ottla.errors import ErrorCode
from ottla.streams.failures import TopologyError
from ottla.streams.partitions import partition_counts, task_count
from ottla.streams.store_spec import StoreKind, StoreSpec
from ottla.streams.topology import Topology

_FOREVER: Final = "-1"
_TIMED: Final = (StoreKind.WINDOW, StoreKind.SESSION, StoreKind.JOIN_WINDOW)
_EXTRA_RETENTION_MS: Final = 24 * 60 * 60 * 1000
"""Changelogs of windows keep them a day longer: brokers go by their own clocks."""


def own_topics(topology: Topology, app_id: str, counts: Mapping[str, int]) -> list[NewTopic]:
    """Repartition topics and changelogs under their full names."""
    found = [
        NewTopic(
            one.full_name(app_id),
            counts[one.name],
            configs={"cleanup.policy": "delete", "retention.ms": _FOREVER},
        )
        for one in topology.internal_topics
    ]
    for part in topology.subtopologies:
        tasks = task_count(part, counts)
        found += [
            NewTopic(topology.changelog_topic(spec.name, app_id), tasks, configs=_kept(spec))
            for spec in part.stores
            if spec.logged and not spec.is_global
        ]
    return found


def _kept(spec: StoreSpec) -> dict[str, str]:
    if spec.kind not in _TIMED or spec.retention_ms is None:
        return {"cleanup.policy": "compact"}
    retention_ms = spec.retention_ms + _EXTRA_RETENTION_MS
    return {"cleanup.policy": "compact,delete", "retention.ms": str(retention_ms)}


def prepare_topics(topology: Topology, app_id: str, admin: Admin) -> dict[str, int]:
    """Makes what is missing of the application's topics; the counts of all it may use come back."""
    there = {topic.name: len(topic.partitions) for topic in admin.list_topics(internal=True)}
    inputs = {topic: there[topic] for topic in topology.input_topics() if topic in there}
    counts = partition_counts(topology, inputs)
    wanted = own_topics(topology, app_id, counts)
    for one in wanted:
        if there.get(one.name, one.partition_count) != one.partition_count:
            raise TopologyError(
                f"{one.name!r} has {there[one.name]} partitions, and now needs"
                f" {one.partition_count}: use another app_id, or delete it and start over"
            )
    wanted += [NewTopic(topic) for topic in topology.output_topics()]
    missing = [one for one in wanted if one.name not in there]
    for created in admin.create_topics(*missing) if missing else []:
        if created.error is not None and created.error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise created.error
    for one in missing:
        there[one.name] = len(admin.wait_for_topic(one.name).partitions)
    if any(
        not isinstance(sink.topic, str)
        for part in topology.subtopologies
        for _, sink in part.sinks()
    ):
        return there  # a function names the topic: it may be any
    used = {one.name for one in wanted} | set(inputs)
    return {name: count for name, count in there.items() if name in used}
