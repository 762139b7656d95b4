"""Decides about commits of offsets and their removal: by clients, by age, with their topics.

Does not know how members come and go; asks the group whether a commit is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ottla.coordination.group.commit_rules import Committer, Refusal, always, no_refusal
from ottla.coordination.group.groups import Group, Groups
from ottla.coordination.group.offsets import CommittedOffset, OffsetKey, Offsets
from ottla.coordination.group.outcome import Call, Outcome
from ottla.coordination.group.records import (
    OFFSET_VALUE_VERSION_WITH_TOPIC_ID,
    offset_record,
    offset_tombstone,
)
from ottla.coordination.group.topics import Topics
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.ids import NO_TOPIC_ID, TopicId
from ottla.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ottla.settings.coordination import GroupSettings
from ottla.settings.declare import MS_PER_MINUTE

EXPIRED_PER_DECISION_MAX: Final = 1000
"""How many tombstones one decision may write; the runtime asks again while it gets any."""
_COMMIT_BY_TOPIC_ID_FROM: Final = 10
_TXN_COMMIT_BY_TOPIC_ID_FROM: Final = 6
_GROUP_ID_NOT_FOUND_FROM: Final = 9
"""From this version of OffsetCommit on a client understands that its group is gone."""
_DEFAULT_RETENTION: Final = -1

_Topic = OffsetCommitRequestTopic | TxnOffsetCommitRequestTopic
_Partition = OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition


class OffsetCommits:
    """The decisions about a shard's committed offsets."""

    __slots__ = ("_groups", "_offsets", "_settings", "_topics", "_version_max")

    def __init__(
        self,
        settings: GroupSettings,
        topics: Topics,
        groups: Groups,
        offsets: Offsets,
        version_max: int = OFFSET_VALUE_VERSION_WITH_TOPIC_ID,
    ) -> None:
        self._version_max = version_max
        """The newest version of records that every broker can read."""
        self._settings = settings
        self._topics = topics
        self._groups = groups
        self._offsets = offsets

    def commit(self, request: OffsetCommitRequest, call: Call) -> Group | None:
        """Decide an OffsetCommit; returns the group where the commit was allowed."""
        group = self._groups.get(request.group_id)
        committer = Committer(
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            call.version,
        )
        try:
            refusal = self._check(group, committer)
        except RequestFailed as failure:
            call.answer(self._commit_answer(request, call, always(failure.code)))
            return None
        expiry = _DEFAULT_RETENTION
        if request.retention_time_ms != _DEFAULT_RETENTION:
            expiry = call.outcome.now_ms + request.retention_time_ms
        call.answer(self._commit_answer(request, call, refusal, expire_timestamp_ms=expiry))
        return group

    def _check(self, group: Group | None, committer: Committer) -> Refusal:
        if group is not None:
            group.check_commit(committer)
            return group.commit_refusal(committer, self._topics)
        if committer.generation >= 0:
            if committer.version >= _GROUP_ID_NOT_FOUND_FROM and not committer.is_transactional:
                raise RequestFailed(ErrorCode.GROUP_ID_NOT_FOUND)
            raise RequestFailed(ErrorCode.ILLEGAL_GENERATION)
        return no_refusal

    def _commit_answer(
        self,
        request: OffsetCommitRequest,
        call: Call,
        refusal: Refusal,
        *,
        expire_timestamp_ms: int = _DEFAULT_RETENTION,
    ) -> OffsetCommitResponse:
        by_id = call.version >= _COMMIT_BY_TOPIC_ID_FROM
        answer = OffsetCommitResponse()
        for topic in request.topics:
            writer = self._writer(request.group_id, topic, call.outcome, by_id=by_id)
            answer.topics.append(
                OffsetCommitResponseTopic(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=[
                        OffsetCommitResponsePartition(
                            partition_index=each.partition_index,
                            error_code=writer.write(each, refusal, expire_timestamp_ms),
                        )
                        for each in topic.partitions
                    ],
                )
            )
        return answer

    def commit_in_transaction(self, request: TxnOffsetCommitRequest, call: Call) -> None:
        """Decide a TxnOffsetCommit; its records must be written as part of the transaction."""
        committer = Committer(
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            call.version,
            is_transactional=True,
        )
        try:
            refusal = self._check(self._groups.get(request.group_id), committer)
        except RequestFailed as failure:
            is_stale = failure.code is ErrorCode.STALE_MEMBER_EPOCH
            code = ErrorCode.ILLEGAL_GENERATION if is_stale else failure.code
            refusal = always(code)
        by_id = call.version >= _TXN_COMMIT_BY_TOPIC_ID_FROM
        answer = TxnOffsetCommitResponse()
        for topic in request.topics:
            writer = self._writer(request.group_id, topic, call.outcome, by_id=by_id)
            partitions = [
                TxnOffsetCommitResponsePartition(
                    partition_index=each.partition_index,
                    error_code=writer.write(each, refusal, _DEFAULT_RETENTION),
                )
                for each in topic.partitions
            ]
            answer.topics.append(
                TxnOffsetCommitResponseTopic(
                    name=topic.name, topic_id=topic.topic_id, partitions=partitions
                )
            )
        call.answer(answer)

    def _writer(
        self, group_id: str, topic: _Topic, outcome: Outcome, *, by_id: bool
    ) -> _TopicWriter:
        name: str | None = topic.name
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if by_id:
            name = self._topics.name_of(TopicId(topic.topic_id))
            missing = ErrorCode.UNKNOWN_TOPIC_ID
        count = None if name is None else self._topics.partition_count(name)
        if name is None or count is None:
            return _TopicWriter(group_id, "", NO_TOPIC_ID, 0, missing, self._limit, outcome)
        topic_id = NO_TOPIC_ID
        if self._version_max >= OFFSET_VALUE_VERSION_WITH_TOPIC_ID:
            topic_id = self._topics.id_of(name) or NO_TOPIC_ID
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return _TopicWriter(group_id, name, topic_id, count, missing, self._limit, outcome)

    @property
    def _limit(self) -> int:
        return self._settings.offset_metadata_max_bytes

    def delete(self, request: OffsetDeleteRequest, call: Call) -> None:
        """Decide an OffsetDelete: of topics the group does not read."""
        if not request.group_id:
            call.answer(OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID))
            return
        group = self._groups.get(request.group_id)
        if group is None:
            call.answer(OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND))
            return
        try:
            group.check_offset_delete()
        except RequestFailed as failure:
            call.answer(OffsetDeleteResponse(error_code=failure.code))
            return
        answer = OffsetDeleteResponse()
        for topic in request.topics:
            partitions = [
                OffsetDeleteResponsePartition(
                    partition_index=each.partition_index,
                    error_code=self._delete_one(
                        group, (request.group_id, topic.name, each.partition_index), call.outcome
                    ),
                )
                for each in topic.partitions
            ]
            answer.topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
        call.answer(answer)

    def _delete_one(self, group: Group, key: OffsetKey, outcome: Outcome) -> ErrorCode:
        _, topic, partition = key
        if not 0 <= partition < (self._topics.partition_count(topic) or 0):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if group.is_subscribed_to(topic):
            return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        if self._offsets.get(key) is not None or self._offsets.is_pending(key):
            outcome.write(offset_tombstone(*key))
        return ErrorCode.NONE

    def delete_all_of(self, group_id: str, outcome: Outcome) -> None:
        """Write tombstones for everything a group has committed."""
        keys = {
            (group_id, topic, partition)
            for topic, partitions in self._offsets.of_group(group_id).items()
            for partition in partitions
        }
        keys.update(self._offsets.pending_keys(group_id))
        for key in sorted(keys):
            outcome.write(offset_tombstone(*key))

    def delete_topics(self, names: Iterable[str], outcome: Outcome) -> None:
        """Write tombstones for every offset of topics that are gone."""
        for key in sorted(self._offsets.keys_of_topics(frozenset(names))):
            outcome.write(offset_tombstone(*key))

    def expire(self, group: Group, outcome: Outcome) -> bool:
        """Write tombstones for offsets nobody used for too long; True where none is left."""
        is_last_one_gone = not self._offsets.has_pending(group.group_id)
        for topic, partitions in self._offsets.of_group(group.group_id).items():
            if group.is_subscribed_to(topic) and not group.is_empty:
                is_last_one_gone = False
                continue
            for partition, committed in partitions.items():
                key = (group.group_id, topic, partition)
                if not self._is_expired(group, committed, outcome.now_ms) or (
                    self._offsets.is_pending(key)
                ):
                    is_last_one_gone = False
                    continue
                if len(outcome.records) >= EXPIRED_PER_DECISION_MAX:
                    return False
                outcome.write(offset_tombstone(*key))
        return is_last_one_gone

    def _is_expired(self, group: Group, committed: CommittedOffset, now_ms: int) -> bool:
        since_ms = group.unused_since_ms(committed.commit_timestamp_ms)
        if since_ms is None:
            return False
        if committed.expire_timestamp_ms is not None:
            return now_ms >= committed.expire_timestamp_ms
        return now_ms - since_ms >= self._settings.offsets_retention_minutes * MS_PER_MINUTE


class _TopicWriter(msgspec.Struct, frozen=True):
    """Writes the commits of one topic of a request."""

    group_id: str
    name: str
    topic_id: bytes
    partition_count: int
    missing: ErrorCode
    """What to say of a partition that does not exist."""
    metadata_size_max: int
    outcome: Outcome

    def write(self, partition: _Partition, refusal: Refusal, expire_timestamp_ms: int) -> ErrorCode:
        """Write one partition's offset, or say why not."""
        index = partition.partition_index
        metadata = partition.committed_metadata or ""
        refused = refusal(self.name, index)
        if refused is not ErrorCode.NONE:
            return refused
        if not 0 <= index < self.partition_count:
            return self.missing
        if len(metadata) > self.metadata_size_max:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        key = OffsetCommitKey(group=self.group_id, topic=self.name, partition=index)
        value = OffsetCommitValue(
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=metadata,
            commit_timestamp=self.outcome.now_ms,
            expire_timestamp=expire_timestamp_ms,
            topic_id=self.topic_id,
        )
        self.outcome.write(offset_record(key, value))
        return ErrorCode.NONE
