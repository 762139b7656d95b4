"""Who wants to know when partitions come and go."""

from __future__ import annotations

from collections.abc import Awaitable, Collection
from typing import Protocol

from ottla.model.ids import TopicPartition


class RebalanceListener(Protocol):
    """Called inside `poll` (and `close`), in the thread or task that polls.

    With asyncio the methods may be coroutines.
    """

    def on_assigned(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """These are read from now on, besides what is read already."""

    def on_revoked(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """These are still this member's, for the last time: commit what was done."""

    def on_lost(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """These belong to somebody else already: nothing can be committed for them."""


class NoListener:
    """Wants to know nothing."""

    __slots__ = ()

    def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Nothing."""

    def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Nothing."""

    def on_lost(self, partitions: Collection[TopicPartition]) -> None:
        """Nothing."""
