"""How much this broker fetches for those of its replicas that are throttled."""

from __future__ import annotations

from collections.abc import Callable

from ottla.broker.partition import Partition
from ottla.broker.throttle import UNLIMITED, Throttle, is_throttled
from ottla.cluster.image import ClusterImage
from ottla.model.ids import BrokerId
from ottla.settings.replication import ReplicationSettings


class FollowerThrottle:
    """One limit for all leaders this broker follows, by its settings of the moment."""

    def __init__(
        self,
        broker_id: BrokerId,
        settings: Callable[[], ReplicationSettings],
        image: Callable[[], ClusterImage],
    ) -> None:
        self._broker_id = broker_id
        self._settings = settings
        self._image = image
        self._throttle = Throttle()

    @property
    def is_off(self) -> bool:
        """Whether nothing is ever held back, as things are set now."""
        return self._settings().follower_replication_throttled_rate >= UNLIMITED

    def holds_back(self, partition: Partition) -> bool:
        """Whether nothing is fetched for a partition now. One in sync is never held back, or
        writers would wait."""
        rate = self._settings().follower_replication_throttled_rate
        if rate >= UNLIMITED or not self._counts(partition):
            return False
        image = self._image().partition(partition.id.topic, partition.id.partition)
        if image is not None and self._broker_id in image.isr:
            return False
        return not self._throttle.may_pass(rate, partition.clock.monotonic_ms())

    def received(self, partition: Partition, size_bytes: int) -> None:
        """So much was fetched for a partition."""
        if self._counts(partition):
            self._throttle.passed(size_bytes)

    def _counts(self, partition: Partition) -> bool:
        replicas = partition.log.settings.follower_replication_throttled_replicas
        return is_throttled(replicas, partition.id.partition, self._broker_id)
