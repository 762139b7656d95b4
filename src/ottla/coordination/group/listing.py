"""Lists and describes groups. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.coordination.group.assignors.spec import PartitionKey, partitions_by_topic
from ottla.coordination.group.classic_group import ClassicGroup, ClassicState
from ottla.coordination.group.classic_member import ClassicMember
from ottla.coordination.group.consumer_group import ConsumerGroup
from ottla.coordination.group.consumer_member import ConsumerMember
from ottla.coordination.group.groups import Group, Groups
from ottla.coordination.group.target import preferred_assignor
from ottla.coordination.group.topics import Topics
from ottla.errors import ErrorCode
from ottla.model.ids import TopicId
from ottla.protocol.messages.consumer_group_describe import (
    Assignment,
    Member,
    TopicPartitions,
)
from ottla.protocol.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from ottla.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from ottla.protocol.messages.list_groups import ListedGroup, ListGroupsRequest

_NOT_FOUND_FROM: Final = 6
"""From this version of DescribeGroups on an unknown group is an error, not a dead group."""
_DEAD: Final = "Dead"
_CLASSIC_MEMBER: Final = 0
_CONSUMER_MEMBER: Final = 1


def list_groups(groups: Groups, request: ListGroupsRequest) -> list[ListedGroup]:
    """The groups in one of the wanted states and of one of the wanted types."""
    states = {each.strip().lower() for each in request.states_filter}
    types = {each.strip().lower() for each in request.types_filter}
    return [
        ListedGroup(
            group_id=each.group_id,
            protocol_type=each.protocol_type or "",
            group_state=each.state_name,
            group_type=each.type_name,
        )
        for each in groups
        if (not states or each.state_name.lower() in states)
        and (not types or each.type_name in types)
    ]


def describe_classic(group: Group | None, group_id: str, version: int) -> DescribedGroup:
    """A classic group with its members; what they say is told only of a stable one."""
    if not isinstance(group, ClassicGroup):
        described = DescribedGroup(group_id=group_id, group_state=_DEAD)
        if version >= _NOT_FOUND_FROM:
            described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            described.error_message = _missing(group, group_id, "classic")
        return described
    is_stable = group.state is ClassicState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if is_stable else "",
        members=[
            _described_member(each, group.protocol, is_stable) for each in group.members.values()
        ],
    )


def _missing(group: Group | None, group_id: str, kind: str) -> str:
    if group is None:
        return f"Group {group_id} not found."
    return f"Group {group_id} is not a {kind} group."


def _described_member(
    member: ClassicMember, protocol: str | None, is_stable: bool
) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata_in(protocol) if is_stable else b"",
        member_assignment=member.assignment if is_stable else b"",
    )


def describe_consumer(
    group: Group | None, group_id: str, topics: Topics, default_assignor: str
) -> DescribedConsumerGroup:
    """A consumer group with its members, what they have and what they should have."""
    if not isinstance(group, ConsumerGroup):
        return DescribedConsumerGroup(
            group_id=group_id,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=_missing(group, group_id, "consumer"),
        )
    return DescribedConsumerGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=preferred_assignor(group, default_assignor),
        members=[_consumer_member(each, group, topics) for each in group.members.values()],
    )


def _consumer_member(member: ConsumerMember, group: ConsumerGroup, topics: Topics) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.pattern or "",
        assignment=_named((*member.assigned, *member.revoking), topics),
        target_assignment=_named(group.target.get(member.member_id, ()), topics),
        member_type=_CLASSIC_MEMBER if member.is_classic else _CONSUMER_MEMBER,
    )


def _named(partitions: Iterable[PartitionKey], topics: Topics) -> Assignment:
    named = []
    for topic_id, indexes in partitions_by_topic(partitions).items():
        name = topics.name_of(TopicId(topic_id))
        if name is not None:
            named.append(TopicPartitions(topic_id=topic_id, topic_name=name, partitions=indexes))
    return Assignment(topic_partitions=named)
