"""The groups of a shard by name, and which of them read a topic."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.coordination.group.classic_group import ClassicGroup

Group = ClassicGroup


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
        """A classic group of this name, made where there is no group."""
        group = self._by_id.get(group_id)
        if group is None:
            group = ClassicGroup(group_id)
            self._by_id[group_id] = group
        assert isinstance(group, ClassicGroup), f"{group_id!r} is not a classic group"
        return group
