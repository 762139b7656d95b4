"""Applies the records of the log to the shard's state, in order. Nothing else changes what is kept.

On loading, records come from a compacted log: what they say is taken as it is, whatever was before.
"""

from __future__ import annotations

from ottla.coordination.decision import Said
from ottla.coordination.group.classic_group import ClassicGroup
from ottla.coordination.group.classic_membership import apply_generation
from ottla.coordination.group.consumer_group import ConsumerGroup
from ottla.coordination.group.consumer_records import Change, apply_change
from ottla.coordination.group.groups import Groups
from ottla.coordination.group.offsets import Offsets
from ottla.coordination.group.records import decode_record, group_id_of
from ottla.protocol.messages.group_records import (
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)


class Replay:
    """Takes records one by one."""

    __slots__ = ("_groups", "_offsets")

    def __init__(self, groups: Groups, offsets: Offsets) -> None:
        self._groups = groups
        self._offsets = offsets

    def record(self, key: bytes, value: bytes | None, producer_id: int) -> None:
        """Take one record; those of other kinds of groups are not ours to read."""
        decoded = decode_record(key, value)
        if decoded is not None:
            self.said(decoded, producer_id)

    def said(self, decoded: Said, producer_id: int) -> None:
        """Take what a record of ours says."""
        match decoded:
            case OffsetCommitKey() as commit, None:
                self._offsets.remove((commit.group, commit.topic, commit.partition))
            case OffsetCommitKey() as commit, OffsetCommitValue() as committed:
                self._offset(commit, committed, producer_id)
            case LegacyOffsetCommitKey() as commit, None:
                self._offsets.remove((commit.group, commit.topic, commit.partition))
            case LegacyOffsetCommitKey() as commit, LegacyOffsetCommitValue() as old:
                self._offset(commit, _modern(old), producer_id)
            case GroupMetadataKey() as classic, None:
                if isinstance(self._groups.get(classic.group), ClassicGroup):
                    self._groups.remove(classic.group)
            case GroupMetadataKey() as classic, GroupMetadataValue() as generation:
                apply_generation(self._groups.classic(classic.group), generation)
            case _:
                self._consumer(decoded)

    def _consumer(self, change: Change) -> None:
        group_id = group_id_of(change[0])
        if change[1] is not None:
            apply_change(self._groups.consumer(group_id), change)
            return
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return  # what the tombstone removes is not there
        if isinstance(change[0], ConsumerGroupMetadataKey):
            self._groups.remove(group_id)
        else:
            apply_change(group, change)

    def _offset(
        self,
        key: OffsetCommitKey | LegacyOffsetCommitKey,
        value: OffsetCommitValue,
        producer_id: int,
    ) -> None:
        if self._groups.get(key.group) is None:
            self._groups.classic(key.group)  # a simple group: it has offsets and no members
        self._offsets.put((key.group, key.topic, key.partition), value, producer_id)


def _modern(value: LegacyOffsetCommitValue) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
    )
