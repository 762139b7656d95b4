"""How far groups have read: committed offsets, the lag behind the end, changing and forgetting."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ottla.clients.client import Client
from ottla.clients.coordinators import Coordinated, find_coordinator
from ottla.clients.failures import GroupHasMembers, TopicNotFound, check_answer, refusal
from ottla.clients.groups import group_refusal
from ottla.clients.offsets import offset_ranges
from ottla.errors import ErrorCode
from ottla.model.ids import NO_LEADER_EPOCH, LeaderEpoch, Offset, TopicPartition
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)

_BY_NAME_UNTIL: Final = 9
"""From version 10 on topics have ids only; offsets of a deleted topic could not be shown."""
_FETCH_ALL_FROM: Final = 2
"""The first version of OffsetFetch that answers for all topics of a group."""
_COMMIT_FROM: Final = 2
"""The first version of OffsetCommit in which the broker says how long an offset is kept."""
_MEMBERS_SPEAK: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_MEMBER_EPOCH,
    }
)
"""How a group refuses a commit of somebody who is not in it, while it has members."""


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """Where a group goes on in a partition."""

    offset: Offset
    leader_epoch: LeaderEpoch = NO_LEADER_EPOCH
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """How far a group is behind in one partition; None where a number is not known."""

    partition: TopicPartition
    committed: Offset | None
    start: Offset | None
    end: Offset | None

    @property
    def lag(self) -> int | None:
        """Offsets between the committed one and the end."""
        if self.committed is None or self.end is None:
            return None
        return max(0, self.end - self.committed)


Ranges = Mapping[TopicPartition, tuple[Offset, Offset]]
"""For partitions the range [start, end) of offsets a reader can have."""


async def committed_offsets(
    client: Client, group: str, *, waits_for_transactions: bool = False
) -> dict[TopicPartition, CommittedOffset]:
    """All offsets a group has committed; none for a group nobody knows.

    With `waits_for_transactions` none that a transaction about to end is changing.
    """
    request = OffsetFetchRequest(
        group_id=group,
        topics=None,
        groups=[OffsetFetchRequestGroup(group_id=group, topics=None)],
        require_stable=waits_for_transactions,
    )

    async def attempt() -> dict[TopicPartition, CommittedOffset]:
        coordinator = await find_coordinator(client, Coordinated.GROUP, group)
        response = await client.call(
            request,
            OffsetFetchResponse,
            to=coordinator,
            at_least=_FETCH_ALL_FROM,
            at_most=_BY_NAME_UNTIL,
        )
        return _committed(response, group)

    found = await client.retrying(attempt)
    return dict(sorted(found.items()))


async def commit_offsets(
    client: Client, group: str, offsets: Mapping[TopicPartition, CommittedOffset]
) -> None:
    """Sets where a group without members goes on; GroupHasMembers if it has some."""
    request = OffsetCommitRequest(
        group_id=group,
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
                    for each in partitions
                ],
            )
            for topic, partitions in by_topic(offsets).items()
        ],
    )

    async def attempt() -> None:
        coordinator = await find_coordinator(client, Coordinated.GROUP, group)
        response = await client.call(
            request,
            OffsetCommitResponse,
            to=coordinator,
            at_least=_COMMIT_FROM,
            at_most=_BY_NAME_UNTIL,
        )
        for topic in response.topics:
            for row in topic.partitions:
                partition = TopicPartition(topic.name, row.partition_index)
                _check_commit(row.error_code, group, partition)

    await client.retrying(attempt)


async def delete_offsets(client: Client, group: str, partitions: Iterable[TopicPartition]) -> None:
    """Forgets how far a group has read in partitions that it does not read any more."""
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=[
                    OffsetDeleteRequestPartition(partition_index=each.partition) for each in rows
                ],
            )
            for topic, rows in by_topic(partitions).items()
        ],
    )

    async def attempt() -> None:
        coordinator = await find_coordinator(client, Coordinated.GROUP, group)
        response = await client.call(request, OffsetDeleteResponse, to=coordinator)
        if response.error_code:
            raise group_refusal(response.error_code, group)
        for topic in response.topics:
            for row in topic.partitions:
                check_answer(row.error_code, f"group {group!r} in {topic.name!r}")

    await client.retrying(attempt)


async def ranges_of(client: Client, partitions: Iterable[TopicPartition]) -> Ranges:
    """The ranges of those partitions that there are and that have a leader."""
    wanted = by_topic(partitions)
    picture = await client.retrying(lambda: client.refresh(list(wanted)))

    async def ask(topic: str, rows: list[TopicPartition]) -> Ranges:
        info = picture.topics.get(topic)
        led = {row.partition for row in info.partitions if row.leader >= 0} if info else set()
        led &= {row.partition for row in rows}
        ranges = await offset_ranges(client, topic, sorted(led))
        return {TopicPartition(topic, partition): ranges[partition] for partition in ranges}

    answers = await asyncio.gather(*(ask(topic, rows) for topic, rows in wanted.items()))
    return {partition: range_ for answer in answers for partition, range_ in answer.items()}


async def group_lag(
    client: Client, group: str, *, also: Iterable[TopicPartition] = ()
) -> list[PartitionLag]:
    """How far a group is behind wherever it has committed, and in `also` such partitions."""
    committed = await committed_offsets(client, group)
    partitions = sorted({*committed, *also})
    ranges = await ranges_of(client, partitions)
    rows = []
    for partition in partitions:
        start, end = ranges.get(partition, (None, None))
        at = committed.get(partition)
        rows.append(PartitionLag(partition, None if at is None else at.offset, start, end))
    return rows


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    """The partitions in order, under the names of their topics."""
    found: dict[str, list[TopicPartition]] = {}
    for partition in sorted(partitions):
        found.setdefault(partition.topic, []).append(partition)
    return found


def _committed(response: OffsetFetchResponse, group: str) -> dict[TopicPartition, CommittedOffset]:
    """What the answer says, which of its two shapes it may have."""
    rows: list[tuple[str, OffsetFetchResponsePartition | OffsetFetchResponsePartitions]] = [
        (topic.name, row) for topic in response.topics for row in topic.partitions
    ]
    codes = [response.error_code]
    for answer in response.groups:
        codes.append(answer.error_code)
        rows += [(topic.name, row) for topic in answer.topics for row in topic.partitions]
    for code in codes:
        if code and code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise group_refusal(code, group)
    found: dict[TopicPartition, CommittedOffset] = {}
    for topic, row in rows:
        check_answer(row.error_code, f"group {group!r} in {topic}-{row.partition_index}")
        if row.committed_offset >= 0:
            found[TopicPartition(topic, row.partition_index)] = CommittedOffset(
                Offset(row.committed_offset),
                LeaderEpoch(row.committed_leader_epoch),
                row.metadata or "",
            )
    return found


def _check_commit(code: int, group: str, partition: TopicPartition) -> None:
    if code in _MEMBERS_SPEAK:
        raise GroupHasMembers(group)
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise TopicNotFound(partition.topic, partition.partition)
    if code:
        raise refusal(code, f"group {group!r} in {partition}")
