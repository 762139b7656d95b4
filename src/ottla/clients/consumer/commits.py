"""A group's offsets, from a member's side: read where to begin, write how far it is."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from ottla.clients.client import Client
from ottla.clients.consumer.group_place import GroupPlace, OffsetAndMetadata
from ottla.clients.coordinators import Coordinated, find_coordinator
from ottla.clients.failures import CommitRefused, Fenced, check_answer, error_code
from ottla.clients.group_offsets import by_topic
from ottla.clients.retry import retry
from ottla.errors import ErrorCode, OttlaError
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)

T = TypeVar("T")

COORDINATOR_LANE: Final = "coordinator"
_BY_NAME_UNTIL: Final = 9
_COMMIT_FROM: Final = 2
_FETCH_FROM: Final = 1
_STABLE_FROM: Final = 7
_STALE: Final = ErrorCode.STALE_MEMBER_EPOCH
_REFUSED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_MEMBER_EPOCH,
        _STALE,
    }
)

_log = logging.getLogger("ottla.clients.consumer")


class GroupCoordinator:
    """The broker that speaks for the group, found again when it has moved."""

    __slots__ = ("_broker", "_client", "_timeout_s", "group_id")

    def __init__(self, client: Client, group_id: str, timeout_s: float) -> None:
        self._client = client
        self.group_id = group_id
        self._timeout_s = timeout_s
        self._broker: BrokerId | None = None

    async def find(self) -> BrokerId:
        """The broker to ask."""
        if self._broker is None:
            self._broker = await find_coordinator(self._client, Coordinated.GROUP, self.group_id)
        return self._broker

    def forget(self) -> None:
        """It may have moved."""
        self._broker = None

    async def asking(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Tries until it works, can not, or takes too long."""

        async def look_again(_: OttlaError) -> None:
            self.forget()

        policy = replace(self._client.options.retries, total_s=self._timeout_s)
        return await retry(policy, attempt, before_again=look_again)


class Commits:
    """Reads and writes the group's offsets under the member's name."""

    __slots__ = ("_client", "_coordinator", "_place", "_waits_for_stable")

    def __init__(
        self,
        client: Client,
        coordinator: GroupCoordinator,
        place: Callable[[], GroupPlace],
        *,
        waits_for_stable: bool,
    ) -> None:
        self._client = client
        self._coordinator = coordinator
        self._place = place
        self._waits_for_stable = waits_for_stable

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Writes them; CommitRefused if the group has gone on without this member."""
        if offsets:
            await self._coordinator.asking(lambda: self._commit_once(offsets))

    async def _commit_once(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        place = self._place()
        request = OffsetCommitRequest(
            group_id=place.group_id,
            generation_id_or_member_epoch=place.generation,
            member_id=place.member_id,
            group_instance_id=place.instance_id,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=each.partition,
                            committed_offset=offsets[each].offset,
                            committed_leader_epoch=offsets[each].leader_epoch,
                            committed_metadata=offsets[each].metadata,
                        )
                        for each in rows
                    ],
                )
                for topic, rows in by_topic(offsets).items()
            ],
        )
        response = await self._client.call(
            request,
            OffsetCommitResponse,
            to=await self._coordinator.find(),
            at_least=_COMMIT_FROM,
            at_most=_BY_NAME_UNTIL,
            lane=COORDINATOR_LANE,
        )
        for topic in response.topics:
            for row in topic.partitions:
                code = error_code(row.error_code)
                if code == ErrorCode.FENCED_INSTANCE_ID:
                    raise Fenced(place.instance_id or place.group_id, code)
                if code == _STALE and self._place() != place:
                    return await self._commit_once(offsets)
                if code in _REFUSED:
                    raise CommitRefused(place.group_id, code)
                where = f"{topic.name}-{row.partition_index}"
                check_answer(row.error_code, f"group {place.group_id!r} in {where}")
        return None

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Those of the partitions that have a committed offset."""
        wanted = by_topic(partitions)
        if not wanted:
            return {}
        return await self._coordinator.asking(lambda: self._committed_once(wanted))

    async def _committed_once(
        self, wanted: Mapping[str, list[TopicPartition]]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        place = self._place()
        numbers = {topic: [each.partition for each in rows] for topic, rows in wanted.items()}
        request = OffsetFetchRequest(
            group_id=place.group_id,
            topics=[
                OffsetFetchRequestTopic(name=t, partition_indexes=n) for t, n in numbers.items()
            ],
            groups=[
                OffsetFetchRequestGroup(
                    group_id=place.group_id,
                    topics=[
                        OffsetFetchRequestTopics(name=t, partition_indexes=n)
                        for t, n in numbers.items()
                    ],
                )
            ],
            require_stable=self._waits_for_stable,
        )
        response = await self._client.call(
            request,
            OffsetFetchResponse,
            to=await self._coordinator.find(),
            at_least=_STABLE_FROM if self._waits_for_stable else _FETCH_FROM,
            at_most=_BY_NAME_UNTIL,
            lane=COORDINATOR_LANE,
        )
        return _found(response, place.group_id)


def _found(response: OffsetFetchResponse, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
    rows: list[tuple[str, OffsetFetchResponsePartition | OffsetFetchResponsePartitions]] = [
        (topic.name, row) for topic in response.topics for row in topic.partitions
    ]
    check_answer(response.error_code, f"group {group_id!r}")
    for group in response.groups:
        check_answer(group.error_code, f"group {group_id!r}")
        rows += [(topic.name, row) for topic in group.topics for row in topic.partitions]
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for topic, row in rows:
        check_answer(row.error_code, f"group {group_id!r} in {topic}-{row.partition_index}")
        if row.committed_offset >= 0:
            found[TopicPartition(topic, row.partition_index)] = OffsetAndMetadata(
                row.committed_offset, row.metadata or "", row.committed_leader_epoch
            )
    return found
