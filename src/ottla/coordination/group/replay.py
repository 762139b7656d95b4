"""Applies the records of the log to the shard's state, in order. Nothing else changes what is kept.

On loading, records come from a compacted log: what they say is taken as it is, whatever was before.
"""

from __future__ import annotations

from ottla.coordination.group.classic_membership import apply_generation
from ottla.coordination.group.groups import Groups
from ottla.coordination.group.offsets import Offsets
from ottla.coordination.group.records import decode_record
from ottla.protocol.messages.group_records import (
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
        if decoded is None:
            return
        match decoded:
            case OffsetCommitKey() as commit, None:
                self._offsets.remove((commit.group, commit.topic, commit.partition))
            case OffsetCommitKey() as commit, OffsetCommitValue() as committed:
                self._offset(commit, committed, producer_id)
            case LegacyOffsetCommitKey() as commit, None:
                self._offsets.remove((commit.group, commit.topic, commit.partition))
            case LegacyOffsetCommitKey() as commit, LegacyOffsetCommitValue() as old:
                self._offset(commit, _modern(old), producer_id)
            case GroupMetadataKey(), None:
                self._groups.remove(decoded[0].group)
            case GroupMetadataKey(), GroupMetadataValue() as generation:
                apply_generation(self._groups.classic(decoded[0].group), generation)
            case _:
                pass

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
