"""Lists and describes groups. Changes nothing."""

from __future__ import annotations

from typing import Final

from ottla.coordination.group.classic_group import ClassicGroup, ClassicState
from ottla.coordination.group.classic_member import ClassicMember
from ottla.coordination.group.groups import Group, Groups
from ottla.errors import ErrorCode
from ottla.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from ottla.protocol.messages.list_groups import ListedGroup, ListGroupsRequest

_NOT_FOUND_FROM: Final = 6
"""From this version of DescribeGroups on an unknown group is an error, not a dead group."""
_DEAD: Final = "Dead"


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
            described.error_message = f"There is no classic group {group_id!r}."
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
