"""Groups: list, describe, delete. Their offsets are in `group_offsets`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.clients.client import Client
from ottla.clients.coordinators import Coordinated, find_coordinator
from ottla.clients.failures import (
    BrokerTooOld,
    GroupHasMembers,
    GroupNotFound,
    check_answer,
    error_code,
    refusal,
)
from ottla.clients.outcome import Outcome
from ottla.errors import ErrorCode, ProtocolError, RequestFailed
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.codec import decode
from ottla.protocol.messages import consumer_group_describe, describe_groups
from ottla.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ottla.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
_DEAD: Final = "Dead"
_STATES_FROM: Final = 4
_TYPES_FROM: Final = 5
"""The first versions of ListGroups that know states and types."""
_EMBEDDED_VERSION_MAX: Final = 3
"""Of what members tell each other; a newer one begins like this one."""
_EMBEDDED_VERSION_BYTES: Final = 2
_ELSEWHERE: Final = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})
"""What a broker says of a group that does not use the newer protocol, or to one who asks so."""


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group in a list; what an old broker does not say is empty."""

    id: str
    type: str
    state: str
    protocol_type: str
    coordinator: BrokerId


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A consumer of a group; the epoch is None in a classic group, which has none."""

    id: str
    instance_id: str | None
    client_id: str
    host: str
    subscription: tuple[str, ...]
    """Names of topics; of a pattern, the pattern between slashes."""
    assigned: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...] | None = None
    """What it should have once the group has settled; None where only that is told."""
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group with its members."""

    id: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: BrokerId
    members: tuple[GroupMember, ...]
    epoch: int | None = None

    def owners(self) -> dict[TopicPartition, GroupMember]:
        """Who reads which partition."""
        return {partition: member for member in self.members for partition in member.assigned}


async def list_groups(
    client: Client, *, states: Sequence[str] = (), types: Sequence[str] = ()
) -> list[GroupListing]:
    """The groups of all brokers by name; of the states and types named, if any are."""
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    at_least = _TYPES_FROM if types else _STATES_FROM if states else 0

    async def ask(broker: BrokerId) -> list[GroupListing]:
        response = await client.call(request, ListGroupsResponse, to=broker, at_least=at_least)
        check_answer(response.error_code, f"the groups of broker {broker}")
        return [
            GroupListing(
                row.group_id, row.group_type, row.group_state, row.protocol_type, coordinator=broker
            )
            for row in response.groups
        ]

    async def attempt() -> list[GroupListing]:
        brokers = (await client.refresh()).brokers
        answers = await asyncio.gather(*(ask(broker) for broker in brokers))
        return [group for answer in answers for group in answer]

    return sorted(await client.retrying(attempt), key=lambda group: group.id)


async def describe_group(client: Client, group: str) -> GroupDescription:
    """One group as it is now; GroupNotFound if there is none."""

    async def attempt() -> GroupDescription:
        coordinator = await find_coordinator(client, Coordinated.GROUP, group)
        found = await _describe_consumer(client, coordinator, group)
        return found or await _describe_classic(client, coordinator, group)

    return await client.retrying(attempt)


async def delete_groups(client: Client, groups: Iterable[str]) -> list[Outcome]:
    """Deletes groups with their offsets; one with members stays."""
    return list(await asyncio.gather(*(_delete(client, group) for group in dict.fromkeys(groups))))


def group_refusal(number: int, group: str, message: str | None = None) -> RequestFailed:
    """The exception for an error code of an answer about one group."""
    match error_code(number):
        case ErrorCode.GROUP_ID_NOT_FOUND:
            return GroupNotFound(group)
        case ErrorCode.NON_EMPTY_GROUP:
            return GroupHasMembers(group)
        case _:
            return refusal(number, f"group {group!r}", message)


async def _delete(client: Client, group: str) -> Outcome:
    request = DeleteGroupsRequest(groups_names=[group])

    async def attempt() -> None:
        coordinator = await find_coordinator(client, Coordinated.GROUP, group)
        response = await client.call(request, DeleteGroupsResponse, to=coordinator)
        for row in response.results:
            if row.error_code:
                raise group_refusal(row.error_code, group, row.error_message)

    try:
        await client.retrying(attempt)
    except RequestFailed as error:
        return Outcome(group, error)
    return Outcome(group)


async def _describe_consumer(
    client: Client, coordinator: BrokerId, group: str
) -> GroupDescription | None:
    """The group if it uses the newer protocol, where members are told what to read."""
    request = ConsumerGroupDescribeRequest(group_ids=[group])
    try:
        response = await client.call(request, ConsumerGroupDescribeResponse, to=coordinator)
    except BrokerTooOld:
        return None
    for row in response.groups:
        if error_code(row.error_code) in _ELSEWHERE:
            return None
        if row.error_code:
            raise group_refusal(row.error_code, group, row.error_message)
        return GroupDescription(
            id=row.group_id,
            type=CONSUMER,
            state=row.group_state,
            protocol_type=CONSUMER,
            assignor=row.assignor_name,
            coordinator=coordinator,
            members=tuple(_consumer_member(member) for member in row.members),
            epoch=row.group_epoch,
        )
    return None


async def _describe_classic(client: Client, coordinator: BrokerId, group: str) -> GroupDescription:
    request = DescribeGroupsRequest(groups=[group])
    response = await client.call(request, DescribeGroupsResponse, to=coordinator)
    for row in response.groups:
        if row.error_code:
            raise group_refusal(row.error_code, group, row.error_message)
        if row.group_state == _DEAD:
            break
        return GroupDescription(
            id=row.group_id,
            type=CLASSIC,
            state=row.group_state,
            protocol_type=row.protocol_type,
            assignor=row.protocol_data,
            coordinator=coordinator,
            members=tuple(_classic_member(member, row.protocol_type) for member in row.members),
        )
    raise GroupNotFound(group)


def _consumer_member(member: consumer_group_describe.Member) -> GroupMember:
    pattern = member.subscribed_topic_regex
    return GroupMember(
        id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        host=member.client_host.removeprefix("/"),
        subscription=(*member.subscribed_topic_names, *([f"/{pattern}/"] if pattern else [])),
        assigned=_consumer_partitions(member.assignment),
        target=_consumer_partitions(member.target_assignment),
        epoch=member.member_epoch,
    )


def _consumer_partitions(
    assignment: consumer_group_describe.Assignment,
) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(
            TopicPartition(topic.topic_name, partition)
            for topic in assignment.topic_partitions
            for partition in topic.partitions
        )
    )


def _classic_member(
    member: describe_groups.DescribedGroupMember, protocol_type: str
) -> GroupMember:
    is_consumer = protocol_type == CONSUMER  # others (Connect's workers) have words of their own
    return GroupMember(
        id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.client_host.removeprefix("/"),
        subscription=_embedded_topics(member.member_metadata) if is_consumer else (),
        assigned=_embedded_partitions(member.member_assignment) if is_consumer else (),
    )


def _embedded_topics(metadata: bytes) -> tuple[str, ...]:
    version = _embedded_version(metadata)
    if version is None:
        return ()
    try:
        body = metadata[_EMBEDDED_VERSION_BYTES:]
        return tuple(sorted(decode(ConsumerProtocolSubscription, body, version).topics))
    except ProtocolError:
        return ()


def _embedded_partitions(assignment: bytes) -> tuple[TopicPartition, ...]:
    version = _embedded_version(assignment)
    if version is None:
        return ()
    try:
        body = assignment[_EMBEDDED_VERSION_BYTES:]
        topics = decode(ConsumerProtocolAssignment, body, version).assigned_partitions
    except ProtocolError:
        return ()
    return tuple(sorted(TopicPartition(t.topic, each) for t in topics for each in t.partitions))


def _embedded_version(embedded: bytes) -> int | None:
    """The version of what members tell each other; None where they tell nothing."""
    if len(embedded) < _EMBEDDED_VERSION_BYTES:
        return None
    version = int.from_bytes(embedded[:_EMBEDDED_VERSION_BYTES], "big", signed=True)
    return min(version, _EMBEDDED_VERSION_MAX) if version >= 0 else None
