"""How the partitions of one topic are divided among its readers, in runs, near ones first.

Knows nothing of groups or other topics.

Invariants:
1. No reader gets more than an even share, rounded up, and only as many get the rounded-up share as
   the remainder allows.
2. A partition is either in `left` or in `given`, once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class TopicShares:
    """The division of one topic under way."""

    __slots__ = ("_extra", "_racks", "_readers", "_share", "given", "left", "topic")

    def __init__(
        self, topic: str, readers: Mapping[str, str | None], racks: Sequence[frozenset[str]]
    ) -> None:
        """`readers` are ids with their racks, in order; `racks` those of every partition."""
        self.topic = topic
        self._readers = readers
        self._racks = racks
        self._share, self._extra = divmod(len(racks), len(readers))
        self.left = list(range(len(racks)))
        self.given: dict[str, list[int]] = {reader: [] for reader in readers}

    @property
    def likeness(self) -> tuple[frozenset[str], int]:
        """Topics for which this is equal are divided alike."""
        return frozenset(self._readers), len(self._racks)

    @property
    def has_choice(self) -> bool:
        """Whether it matters for nearness who reads what: not if every rack has everything."""
        everywhere = frozenset[str]().union(*self._racks)
        is_near_some = any(rack in everywhere for rack in self._readers.values() if rack)
        return is_near_some and any(racks != everywhere for racks in self._racks)

    def deal(self, *, nearby_only: bool) -> None:
        """Gives each reader in turn a run of what is left, up to its share."""
        for reader in self._readers:
            fitting = [p for p in self.left if not nearby_only or self.is_near(reader, p)]
            for partition in fitting[: self.room(reader)]:
                self.give(reader, partition)

    def room(self, reader: str) -> int:
        """How many more it may get."""
        most = self._share + (1 if self._extra else 0)
        return max(0, most - len(self.given[reader]))

    def is_near(self, reader: str, partition: int) -> bool:
        """Whether a replica is in the reader's rack; a reader without one is near to all."""
        rack = self._readers[reader]
        return not rack or rack in self._racks[partition]

    def give(self, reader: str, partition: int) -> None:
        """Gives one partition away."""
        self.left.remove(partition)
        self.given[reader].append(partition)
        if len(self.given[reader]) > self._share:
            self._extra -= 1


def share_side_by_side(alike: Sequence[TopicShares]) -> None:
    """Gives the same partition of all these topics to one reader that is near to all of them."""
    first = alike[0]
    for partition in list(first.left):
        for reader in first.given:
            if all(each.room(reader) and each.is_near(reader, partition) for each in alike):
                for each in alike:
                    each.give(reader, partition)
                break
