"""Answers OffsetFetch from what is committed. Changes nothing."""

from __future__ import annotations

from typing import Final

import msgspec

from ottla.coordination.group.groups import Groups
from ottla.coordination.group.offsets import CommittedOffset, Offsets
from ottla.coordination.group.topics import Topics
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.ids import NO_TOPIC_ID, TopicId
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

_MANY_GROUPS_FROM: Final = 8
_BY_TOPIC_ID_FROM: Final = 10
_NO_OFFSET: Final = -1


class FetchStyle(msgspec.Struct, frozen=True):
    """How a client wants to be answered."""

    version: int
    require_stable: bool

    @property
    def by_topic_id(self) -> bool:
        return self.version >= _BY_TOPIC_ID_FROM


class OffsetReads:
    """Reads the committed offsets of groups."""

    __slots__ = ("_groups", "_offsets", "_topics")

    def __init__(self, topics: Topics, groups: Groups, offsets: Offsets) -> None:
        self._topics = topics
        self._groups = groups
        self._offsets = offsets

    def fetch(self, request: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
        """A whole request, whatever its version; all its groups must be of this shard."""
        style = FetchStyle(version, request.require_stable)
        if version >= _MANY_GROUPS_FROM:
            groups = [self.fetch_group(each, style) for each in request.groups]
            return OffsetFetchResponse(groups=groups)
        topics = None
        if request.topics is not None:
            topics = [
                OffsetFetchRequestTopics(name=each.name, partition_indexes=each.partition_indexes)
                for each in request.topics
            ]
        group = OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)
        return _in_old_shape(self.fetch_group(group, style))

    def fetch_group(
        self, request: OffsetFetchRequestGroup, style: FetchStyle
    ) -> OffsetFetchResponseGroup:
        """The offsets of one group, of the topics asked for or of all."""
        group = self._groups.get(request.group_id)
        answer = OffsetFetchResponseGroup(group_id=request.group_id)
        if group is not None:
            try:
                group.check_fetch(request.member_id, request.member_epoch)
            except RequestFailed as failure:
                answer.error_code = failure.code
                return answer
        wanted = request.topics
        if wanted is None:
            wanted = self._all_topics(request.group_id, style)
        answer.topics = [self._topic(request.group_id, each, style) for each in wanted]
        return answer

    def _all_topics(self, group_id: str, style: FetchStyle) -> list[OffsetFetchRequestTopics]:
        found = []
        for name, partitions in self._offsets.of_group(group_id).items():
            topic_id = self._topics.id_of(name)
            if style.by_topic_id and topic_id is None:
                continue  # it cannot be named to this client
            found.append(
                OffsetFetchRequestTopics(
                    name=name, topic_id=topic_id or NO_TOPIC_ID, partition_indexes=list(partitions)
                )
            )
        return found

    def _topic(
        self, group_id: str, topic: OffsetFetchRequestTopics, style: FetchStyle
    ) -> OffsetFetchResponseTopics:
        name: str | None = topic.name
        if style.by_topic_id:
            name = self._topics.name_of(TopicId(topic.topic_id))
        if name is None:
            unknown = [_nothing(i, ErrorCode.UNKNOWN_TOPIC_ID) for i in topic.partition_indexes]
            return OffsetFetchResponseTopics(topic_id=topic.topic_id, partitions=unknown)
        topic_id = self._topics.id_of(name)
        partitions = []
        for index in topic.partition_indexes:
            key = (group_id, name, index)
            committed = self._offsets.get(key)
            if style.require_stable and self._offsets.is_pending(key):
                partitions.append(_nothing(index, ErrorCode.UNSTABLE_OFFSET_COMMIT))
            elif committed is None or _is_of_another_topic(committed, topic_id):
                partitions.append(_nothing(index, ErrorCode.NONE))
            else:
                partitions.append(_answer(index, committed))
        return OffsetFetchResponseTopics(name=name, topic_id=topic.topic_id, partitions=partitions)


def _is_of_another_topic(committed: CommittedOffset, topic_id: bytes | None) -> bool:
    """Whether the offset was committed for a deleted topic of the same name."""
    return committed.topic_id != NO_TOPIC_ID and topic_id not in (None, committed.topic_id)


def _nothing(index: int, code: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index, committed_offset=_NO_OFFSET, error_code=code
    )


def _answer(index: int, committed: CommittedOffset) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _in_old_shape(group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    topics = [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=each.partition_index,
                    committed_offset=each.committed_offset,
                    committed_leader_epoch=each.committed_leader_epoch,
                    metadata=each.metadata,
                    error_code=each.error_code,
                )
                for each in topic.partitions
            ],
        )
        for topic in group.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)
