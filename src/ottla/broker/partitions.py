"""The partitions this broker holds, found by topic name or topic id.

One that the cluster has and this broker has not is told apart from one that nobody has: a client
looks for the leader of the former, and gives up on the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ottla.broker.partition import Partition
from ottla.cluster.image import ClusterImage
from ottla.errors import ErrorCode, RequestFailed, UnknownTopic, UnknownTopicId
from ottla.model.ids import TopicId


class Partitions:
    """All partitions on this broker. Lookups are what every produce and fetch begins with."""

    def __init__(self, image: Callable[[], ClusterImage] = ClusterImage) -> None:
        self.image = image
        """Gives the picture of the cluster."""
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._names: dict[TopicId, str] = {}

    def __len__(self) -> int:
        return sum(len(partitions) for partitions in self._by_name.values())

    def __iter__(self) -> Iterator[Partition]:
        for partitions in tuple(self._by_name.values()):
            yield from tuple(partitions.values())

    def find(self, topic: str, index: int) -> Partition:
        """The partition by its topic's name."""
        partitions = self._by_name.get(topic)
        if partitions is None or (partition := partitions.get(index)) is None:
            if self.image().partition(topic, index) is not None:
                raise RequestFailed(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            raise UnknownTopic(topic, index)
        return partition

    def name_of(self, topic_id: TopicId) -> str:
        """The name of the topic with this id."""
        name = self._names.get(topic_id) or self.image().topic_names.get(topic_id)
        if name is None:
            raise UnknownTopicId(topic_id)
        return name

    def of_topic(self, topic: str) -> dict[int, Partition]:
        """The topic's partitions by index; empty where there are none."""
        return self._by_name.get(topic, {})

    def add(self, partition: Partition) -> None:
        """Makes a partition findable."""
        self._by_name.setdefault(partition.id.topic, {})[partition.id.partition] = partition
        self._names[partition.topic_id] = partition.id.topic

    def remove(self, partition: Partition) -> None:
        """Forgets one partition."""
        held = self._by_name.get(partition.id.topic, {})
        if held.get(partition.id.partition) is partition:
            del held[partition.id.partition]
        if not held and self._by_name.pop(partition.id.topic, None) is not None:
            self._names.pop(partition.topic_id, None)

    def remove_topic(self, topic: str) -> list[Partition]:
        """Forgets a topic; returns the partitions it had."""
        removed = list(self._by_name.pop(topic, {}).values())
        for partition in removed:
            self._names.pop(partition.topic_id, None)
        return removed
