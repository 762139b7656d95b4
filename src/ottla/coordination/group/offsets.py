"""The offsets groups have committed, and those that wait for the end of a transaction.

What must stay true: of two commits of one partition the later record in the log wins, also where
one of them became visible only when its transaction ended. Does not know groups' members.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ottla.model.ids import NO_PRODUCER_ID
from ottla.protocol.messages.group_records import OffsetCommitValue

OffsetKey = tuple[str, str, int]
"""Group, topic and partition."""

_NO_EXPIRY: Final = -1


class CommittedOffset(msgspec.Struct, frozen=True):
    """How far a group has read one partition, as its record says."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None
    topic_id: bytes
    order: int
    """Grows with the record's place in the log."""


TopicOffsets = dict[str, dict[int, CommittedOffset]]


class Offsets:
    """Every committed offset of a shard's groups."""

    __slots__ = ("_by_group", "_holders", "_order", "_pending", "_pending_groups")

    def __init__(self) -> None:
        self._by_group: dict[str, TopicOffsets] = {}
        self._pending: dict[int, dict[OffsetKey, CommittedOffset]] = {}
        """By producer, the offsets of its open transaction."""
        self._holders: dict[OffsetKey, set[int]] = {}
        """The producers whose open transactions hold an offset."""
        self._pending_groups: dict[str, int] = {}
        """How many offsets of open transactions a group has."""
        self._order = 0

    def of_group(self, group_id: str) -> TopicOffsets:
        """A group's offsets by topic and partition; not to be changed."""
        return self._by_group.get(group_id, {})

    def get(self, key: OffsetKey) -> CommittedOffset | None:
        group_id, topic, partition = key
        return self._by_group.get(group_id, {}).get(topic, {}).get(partition)

    def is_pending(self, key: OffsetKey) -> bool:
        """Whether an open transaction holds an offset of the partition."""
        return key in self._holders

    def has_pending(self, group_id: str) -> bool:
        """Whether an open transaction holds any offset of the group."""
        return group_id in self._pending_groups

    def pending_keys(self, group_id: str) -> list[OffsetKey]:
        """The partitions of a group that open transactions hold offsets of."""
        return [key for key in self._holders if key[0] == group_id]

    def keys_of_topics(self, topics: frozenset[str]) -> Iterator[OffsetKey]:
        """Every committed or pending offset of some topics."""
        for group_id, by_topic in self._by_group.items():
            for topic in topics & by_topic.keys():
                for partition in by_topic[topic]:
                    yield group_id, topic, partition
        for key in self._holders:
            if key[1] in topics and self.get(key) is None:
                yield key

    def put(self, key: OffsetKey, value: OffsetCommitValue, producer_id: int) -> None:
        """Take a replayed commit, into its transaction where it is part of one."""
        self._order += 1
        committed = CommittedOffset(
            offset=value.offset,
            leader_epoch=value.leader_epoch,
            metadata=value.metadata,
            commit_timestamp_ms=value.commit_timestamp,
            expire_timestamp_ms=(
                None if value.expire_timestamp == _NO_EXPIRY else value.expire_timestamp
            ),
            topic_id=value.topic_id,
            order=self._order,
        )
        if producer_id == NO_PRODUCER_ID:
            self._store(key, committed)
        else:
            self._pending.setdefault(producer_id, {})[key] = committed
            self._hold(key, producer_id)

    def remove(self, key: OffsetKey) -> None:
        """Take a replayed tombstone: the offset goes, also from open transactions."""
        group_id, topic, partition = key
        by_topic = self._by_group.get(group_id)
        if by_topic is not None and topic in by_topic:
            by_topic[topic].pop(partition, None)
            if not by_topic[topic]:
                del by_topic[topic]
            if not by_topic:
                del self._by_group[group_id]
        for producer_id in tuple(self._holders.get(key, ())):
            del self._pending[producer_id][key]
            self._release(key, producer_id)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Take a replayed marker: the transaction's offsets become visible, or are dropped."""
        for key, committed in self._pending.pop(producer_id, {}).items():
            self._release(key, producer_id)
            if not is_commit:
                continue
            present = self.get(key)
            if present is None or present.order < committed.order:
                self._store(key, committed)

    def _store(self, key: OffsetKey, committed: CommittedOffset) -> None:
        group_id, topic, partition = key
        self._by_group.setdefault(group_id, {}).setdefault(topic, {})[partition] = committed

    def _hold(self, key: OffsetKey, producer_id: int) -> None:
        holders = self._holders.setdefault(key, set())
        if not holders:
            self._pending_groups[key[0]] = self._pending_groups.get(key[0], 0) + 1
        holders.add(producer_id)

    def _release(self, key: OffsetKey, producer_id: int) -> None:
        holders = self._holders[key]
        holders.discard(producer_id)
        if holders:
            return
        del self._holders[key]
        self._pending_groups[key[0]] -= 1
        if not self._pending_groups[key[0]]:
            del self._pending_groups[key[0]]
