"""The groups of a shard by name, and which of them read a topic."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.coordination.group.classic_group import ClassicGroup
from ottla.coordination.group.consumer_group import ConsumerGroup

Group = ClassicGroup | ConsumerGroup


class Groups:
    """Every group there is."""

    __slots__ = ("_by_id",)

    def __init__(self) -> None:
        self._by_id: dict[str, Group] = {}

    def __iter__(self) -> Iterator[Group]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, group_id: str) -> Group | None:
        return self._by_id.get(group_id)

    def put(self, group: Group) -> None:
        self._by_id[group.group_id] = group

    def remove(self, group_id: str) -> None:
        self._by_id.pop(group_id, None)

    def classic(self, group_id: str) -> ClassicGroup:
        """The classic group of this name; a new one where there is none."""
        group = self._by_id.get(group_id)
        if not isinstance(group, ClassicGroup):
            group = self._by_id[group_id] = ClassicGroup(group_id)
        return group

    def consumer(self, group_id: str) -> ConsumerGroup:
        """The consumer group of this name; a new one where there is none."""
        group = self._by_id.get(group_id)
        if not isinstance(group, ConsumerGroup):
            group = self._by_id[group_id] = ConsumerGroup(group_id)
        return group
