"""What the group coordinator asks about topics. Whoever knows the cluster answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ottla.model.ids import TopicId


class Topics(Protocol):
    """The topics of the cluster as they are now."""

    def partition_count(self, name: str) -> int | None:
        """How many partitions the topic has; None where there is no such topic."""
        ...

    def names(self) -> Iterable[str]:
        """Every topic's name."""
        ...

    def name_of(self, topic_id: TopicId) -> str | None:
        """The name of a topic by its id."""
        ...

    def id_of(self, name: str) -> TopicId | None:
        """The id of a topic by its name."""
        ...
