"""Why replicas are not in sync: what was seen when each left, and what its leader sees of it now.

A leader knows why it wished somebody out itself. Whom the controller took out, the pictures of the
cluster tell: one that is not registered any more has died or was cut off, one that still is had
said that it stops. What only an earlier leader saw is gone with its leadership; then the cause is
unknown. Does not know requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ottla.broker.partition import Partition
from ottla.broker.standing import Standing
from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.cluster.in_sync import UNKNOWN_END, Follower
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.messages.describe_topic_partitions import (
    NOT_KNOWN,
    AbsenceCause,
    ReplicaAbsence,
)


class Absence(msgspec.Struct, frozen=True):
    """Why and when a replica left a set in sync; times and records as they were then."""

    cause: AbsenceCause
    left_ms: int
    silent_ms: int = NOT_KNOWN
    lag_ms: int = NOT_KNOWN
    lag_records: int = NOT_KNOWN


_UNKNOWN: Final = Absence(AbsenceCause.UNKNOWN, NOT_KNOWN)
_NOBODY: Final[Mapping[BrokerId, Absence]] = {}


class Absences:
    """What is known of every replica that is not in sync, of partitions that this broker holds."""

    def __init__(self, standing: Standing, image: ClusterImage) -> None:
        self._standing = standing
        self._seen = image
        self._known: dict[str, dict[int, dict[BrokerId, Absence]]] = {}
        self._stopping: dict[BrokerId, int] = {}
        """The epochs of brokers that said that they stop. What they had fetched just before may
        bring them back into a set once more; what ends their session is the stop all the same."""

    def wished_out(self, partition: Partition, replica: BrokerId) -> Absence:
        """The leader gives a replica up; why it does."""
        assert partition.in_sync is not None
        follower = partition.in_sync.followers[replica]
        absence = _given_up(follower, partition.log.end_offset, self._standing)
        self._of(partition.id)[replica] = absence
        return absence

    def stays(self, partition: Partition, replica: BrokerId) -> None:
        """A replica that was wished out is in the set all the same."""
        if replica in self.of(partition.id):
            del self._of(partition.id)[replica]

    def of(self, partition: TopicPartition) -> Mapping[BrokerId, Absence]:
        """What was seen of each that left."""
        return self._known.get(partition.topic, {}).get(partition.partition, _NOBODY)

    def told(self, image: ClusterImage) -> None:
        """Sees who left and who came back since the picture before."""
        before, self._seen = self._seen, image
        if before.topics is not image.topics:
            self._compare_topics(before, image)
        for broker, epoch in tuple(self._stopping.items()):
            if (again := image.brokers.get(broker)) is not None and again.epoch != epoch:
                del self._stopping[broker]

    def _compare_topics(self, before: ClusterImage, image: ClusterImage) -> None:
        for name, old in before.topics.items():
            topic = image.topics.get(name)
            if topic is None or topic.id != old.id:
                self._known.pop(name, None)
            elif topic is not old:
                self._compare(old, topic, before)

    def _compare(self, old: TopicImage, topic: TopicImage, before: ClusterImage) -> None:
        me = self._standing.broker_id
        for was, now in zip(old.partitions, topic.partitions, strict=False):
            if was is now:
                continue
            partition = TopicPartition(topic.name, now.index)
            known = self.of(partition)
            is_led_anew = now.leader_epoch != was.leader_epoch
            for replica in tuple(known):
                is_back = replica in now.isr and (is_led_anew or replica not in was.isr)
                if is_back or replica not in now.replicas:
                    del self._of(partition)[replica]
            if me not in now.replicas:
                continue
            for replica in was.isr:
                if replica in now.replicas and replica not in (*now.isr, *known):
                    cause = self._cause(replica, was, now, before)
                    if cause is not AbsenceCause.UNKNOWN:
                        left = Absence(cause, self._standing.clock.now_ms())
                        self._of(partition)[replica] = left

    def _cause(
        self, replica: BrokerId, was: PartitionImage, now: PartitionImage, before: ClusterImage
    ) -> AbsenceCause:
        """Why somebody else took a replica out."""
        registered, earlier = self._seen.brokers.get(replica), before.brokers.get(replica)
        if registered is None or (earlier is not None and earlier.epoch != registered.epoch):
            has_said_so = replica in self._stopping
            return AbsenceCause.STOPPED if has_said_so else AbsenceCause.SESSION_ENDED
        me = self._standing.broker_id
        has_handed_over = now.leader_epoch == was.leader_epoch + 1
        if now.leader == me and (was.leader == me or (was.leader == replica and has_handed_over)):
            self._stopping[replica] = registered.epoch
            return AbsenceCause.STOPPED
        return AbsenceCause.UNKNOWN  # another leader had its reasons

    def _of(self, partition: TopicPartition) -> dict[BrokerId, Absence]:
        return self._known.setdefault(partition.topic, {}).setdefault(partition.partition, {})


def _given_up(follower: Follower, leader_end: int, standing: Standing) -> Absence:
    now_ms = standing.clock.monotonic_ms()
    lag_ms = now_ms - follower.caught_up_ms
    has_fetched = follower.end_offset != UNKNOWN_END
    silent_ms = now_ms - follower.fetched_ms if has_fetched else lag_ms
    return Absence(
        # One that asked now and then, and never had everything, is slow; else it was away.
        AbsenceCause.BEHIND if silent_ms * 2 < lag_ms else AbsenceCause.SILENT,
        standing.clock.now_ms(),
        silent_ms,
        lag_ms,
        leader_end - follower.end_offset if has_fetched else NOT_KNOWN,
    )


def absences_in(
    partition: Partition, image: PartitionImage, absences: Absences
) -> list[ReplicaAbsence]:
    """Of every replica that is not in sync, as the partition's leader sees it; else nothing."""
    in_sync = partition.in_sync
    if in_sync is None or len(image.isr) == len(image.replicas):
        return []
    now_ms = partition.clock.monotonic_ms()
    known = absences.of(partition.id)
    found = []
    for replica, follower in sorted(in_sync.followers.items()):
        if replica in image.isr:
            continue
        left = known.get(replica, _UNKNOWN)
        has_fetched = follower.end_offset != UNKNOWN_END
        lag_records = partition.log.end_offset - follower.end_offset
        found.append(
            ReplicaAbsence(
                replica_id=replica,
                cause=left.cause,
                left_ms=left.left_ms,
                silent_ms=left.silent_ms,
                lag_ms=left.lag_ms,
                lag_records=left.lag_records,
                silent_now_ms=now_ms - follower.fetched_ms if has_fetched else NOT_KNOWN,
                lag_records_now=lag_records if has_fetched else NOT_KNOWN,
            )
        )
    return found
