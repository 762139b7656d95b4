"""What an assignor is given and what it gives back. Assignors are pure functions of a spec."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

PartitionKey = tuple[bytes, int]
"""A topic's id and a partition's index."""
Partitions = frozenset[PartitionKey]


class MemberSpec(msgspec.Struct, frozen=True):
    """What an assignor knows of a member."""

    topic_ids: frozenset[bytes]
    """The topics it wants to read."""
    assigned: Partitions = frozenset()
    """What it was assigned before."""
    instance_id: str | None = None


class GroupSpec(msgspec.Struct, frozen=True):
    """The members by id, and how many partitions each topic has."""

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[bytes, int]


Assignor = Callable[[GroupSpec], dict[str, Partitions]]
"""Gives each partition that somebody reads to one member that reads its topic."""


def partitions_by_topic(partitions: Iterable[PartitionKey]) -> dict[bytes, list[int]]:
    """The partitions of each topic, both in order."""
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(partitions):
        by_topic.setdefault(topic_id, []).append(index)
    return by_topic
