"""What both kinds of group members have in common: whom they serve, what is asked of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from ottla.clients.consumer.assignors import Racks
from ottla.clients.consumer.group_place import GroupPlace
from ottla.errors import OttlaError
from ottla.model.ids import TopicPartition


class Host(Protocol):
    """The consumer, as its membership sees it."""

    def wanted_topics(self) -> frozenset[str]:
        """The topics subscribed to, with those a pattern matches now."""

    def wanted_expression(self) -> str | None:
        """The pattern that the broker shall match, if there is one."""

    def owned(self) -> frozenset[TopicPartition]:
        """What is read now."""

    async def give_up(self, partitions: Collection[TopicPartition]) -> None:
        """Commits for these, tells the listener, and reads them no more."""

    async def lose(self, partitions: Collection[TopicPartition]) -> None:
        """They are somebody else's already."""

    async def take_over(self, partitions: Collection[TopicPartition]) -> None:
        """Reads exactly these, and tells the listener of the new ones."""

    async def partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        """How many partitions each of the topics has; those that are not there are left out."""

    def partition_racks(self, topics: Collection[str]) -> Racks:
        """In which racks the replicas of the topics' partitions are, as last seen."""

    async def names_of(self, ids: Collection[bytes]) -> dict[bytes, str]:
        """The names of topics by their ids, as far as they are known."""

    def attend(self) -> None:
        """The next poll must look after the group."""

    def since_poll_s(self) -> float:
        """How long ago the last poll was."""

    def fail(self, error: OttlaError) -> None:
        """The membership is over; the next poll raises this."""


class Membership(Protocol):
    """A member of a group."""

    @property
    def place(self) -> GroupPlace: ...

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing to do but to stay."""

    def polled(self) -> None:
        """The caller is here: go on with whatever waits for it."""

    def resubscribed(self) -> None:
        """The topics changed."""

    async def leave(self) -> None:
        """Gives everything up and says good-bye."""

    async def close(self) -> None:
        """Stops all tasks."""
