"""The topics of an application: what it reads must be there, what is its own is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.clients.blocking.admin import Admin
from ottla.clients.topics import NewTopic
from ottla.errors import ErrorCode
from ottla.streams.failures import TopologyError
from ottla.streams.partitions import partition_counts, task_count
from ottla.streams.spark.kept_stores import logged_stores
from ottla.streams.topology import Topology

_FOREVER: Final = "-1"
_TIMES: Final = {"message.timestamp.type": "CreateTime"}
"""Whatever the brokers' default is: times of records mean something to the engine."""
_CHANGELOG: Final = {"cleanup.policy": "compact", **_TIMES}
"""Of windows as well: tasks delete what is too old themselves, each by its own time."""
_REPARTITION: Final = {
    "cleanup.policy": "delete",
    "retention.ms": _FOREVER,
    "segment.bytes": str(50 * 1024 * 1024),
    **_TIMES,
}
"""Kept until they are purged, in segments small enough that purging frees something."""


def own_topics(topology: Topology, app_id: str, counts: Mapping[str, int]) -> list[NewTopic]:
    """Repartition topics and changelogs under their full names."""
    found = [
        NewTopic(
            one.full_name(app_id),
            counts[one.name],
            configs=dict(_REPARTITION),
        )
        for one in topology.internal_topics
    ]
    for part in topology.subtopologies:
        tasks = task_count(part, counts)
        found += [
            NewTopic(topology.changelog_topic(spec.name, app_id), tasks, configs=dict(_CHANGELOG))
            for spec in logged_stores(part)
        ]
    return found


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
