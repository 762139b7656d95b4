"""Keeps each partition that this broker follows with a fetcher from its leader."""

from __future__ import annotations

import asyncio
import logging

from ottla.broker.cluster_view import ClusterView
from ottla.broker.follower_throttle import FollowerThrottle
from ottla.broker.partition import Partition
from ottla.broker.replica_fetcher import ReplicaFetcher
from ottla.broker.spoken_versions import SpokenVersions
from ottla.model.ids import BrokerId, TopicPartition
from ottla.net.listener import Address

log = logging.getLogger(__name__)


class Replication:
    """The fetchers: one a leader, made when first needed."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._spoken = SpokenVersions.of(view.settings.replication.protocol_level)
        self._throttle = FollowerThrottle(
            view.broker_id, lambda: view.settings.replication, lambda: view.image
        )
        self._fetchers: dict[BrokerId, tuple[Address, ReplicaFetcher]] = {}
        self._followed: dict[TopicPartition, BrokerId] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._is_stopped = False

    def update(self, partition: Partition) -> None:
        """Follows the partition's leader of now, or nobody."""
        leader = None if partition.is_leader else partition.leader
        before = self._followed.get(partition.id)
        if before is not None and before != leader:
            self.leave(partition)
        fetcher = None if leader is None else self._fetcher(leader)
        if leader is not None and fetcher is not None:
            self._followed[partition.id] = leader
            fetcher.follow(partition)

    def leave(self, partition: Partition) -> None:
        """Replicates the partition no more."""
        leader = self._followed.pop(partition.id, None)
        if leader is not None and leader in self._fetchers:
            fetcher = self._fetchers[leader][1]
            fetcher.leave(partition)
            if not len(fetcher):
                self._end(leader)

    async def stop(self) -> None:
        """Ends all fetchers, for good."""
        self._is_stopped = True
        for leader in tuple(self._fetchers):
            self._end(leader)
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _fetcher(self, leader: BrokerId) -> ReplicaFetcher | None:
        address = self._view.address_of(leader)
        if address is None or self._is_stopped:
            return None  # It has gone; the controller will name another leader. Or we are going.
        known = self._fetchers.get(leader)
        if known is not None and known[0] == address:
            return known[1]
        fetcher = ReplicaFetcher(
            self._view.broker_id, leader, address, self._throttle, self._spoken
        )
        if known is not None:
            for partition in self._end(leader):
                fetcher.follow(partition)
        self._fetchers[leader] = (address, fetcher)
        return fetcher

    def _end(self, leader: BrokerId) -> list[Partition]:
        _, fetcher = self._fetchers.pop(leader)
        task = asyncio.get_running_loop().create_task(fetcher.stop())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return fetcher.partitions
