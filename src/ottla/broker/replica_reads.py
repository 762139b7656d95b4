"""Which replica a consumer reads from, and how much followers are sent. Does not read anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ottla.broker.partition import Partition
from ottla.broker.throttle import UNLIMITED, Throttle, is_throttled
from ottla.cluster.image import BrokerImage
from ottla.model.ids import BrokerId
from ottla.settings.replication import ReplicationSettings

WATERMARK_SECONDS_MAX: Final = 0.05
"""How long a follower may go on without hearing of a new high watermark. It hears of it with the
next records anyway; to tell it at once would double the fetches of a busy partition."""


class ReplicaReads:
    """A broker's rules for reading from replicas, by its settings of the moment."""

    def __init__(
        self,
        broker_id: BrokerId,
        settings: Callable[[], ReplicationSettings],
        brokers: Callable[[], Mapping[BrokerId, BrokerImage]],
    ) -> None:
        self._broker_id = broker_id
        self._settings = settings
        self._brokers = brokers
        self._throttle = Throttle()

    # --- consumers ---

    @property
    def may_be_here(self) -> bool:
        """Whether a consumer may read from a replica that does not lead."""
        return self._settings().may_read_from_followers

    def closer_replica(self, partition: Partition, rack: str, offset: int) -> BrokerId | None:
        """The replica in the reader's own rack that has most and has this offset; None for the
        leader itself."""
        in_sync = partition.in_sync
        if in_sync is None or not self.may_be_here:
            return None
        brokers = self._brokers()
        own = brokers.get(self._broker_id)
        if own is not None and own.rack == rack:
            return None
        near = [
            broker
            for broker in in_sync.members
            if (known := brokers.get(broker)) is not None
            and known.rack == rack
            and (follower := in_sync.followers.get(broker)) is not None
            and follower.end_offset >= offset
        ]
        return max(near, key=lambda broker: in_sync.followers[broker].end_offset, default=None)

    # --- followers ---

    @property
    def watermark_seconds_max(self) -> float:
        """How late a follower may hear of a new high watermark."""
        return 0.0 if self.may_be_here else WATERMARK_SECONDS_MAX

    def holds_back(self, partition: Partition, follower: BrokerId) -> bool:
        """Whether a follower gets nothing of this partition now. One in sync always gets it, or
        writers would wait."""
        rate = self._settings().leader_replication_throttled_rate
        if rate >= UNLIMITED or not self._counts(partition):
            return False
        in_sync = partition.in_sync
        if in_sync is None or follower in in_sync.maximal:
            return False
        return not self._throttle.may_pass(rate, partition.clock.monotonic_ms())

    def sent(self, partition: Partition, size_bytes: int) -> None:
        """A follower was sent so much of a partition."""
        if self._counts(partition):
            self._throttle.passed(size_bytes)

    def _counts(self, partition: Partition) -> bool:
        replicas = partition.log.settings.leader_replication_throttled_replicas
        return is_throttled(replicas, partition.id.partition, self._broker_id)
