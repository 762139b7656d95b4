"""The answers to JoinGroup and SyncGroup of a classic group, and the record of one.

Does not decide anything: turns a group as it is into messages.
"""

from __future__ import annotations

from typing import Final

from ottla.coordination.decision import NewRecord
from ottla.coordination.group.classic_group import ClassicGroup
from ottla.coordination.group.classic_member import ClassicMember
from ottla.coordination.group.records import group_record
from ottla.errors import ErrorCode
from ottla.protocol.messages.group_records import GroupMetadataValue, MemberMetadata
from ottla.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.protocol.messages.sync_group import SyncGroupResponse

_NULL_PROTOCOL_FROM: Final = 7
"""The first version of JoinGroup whose answer may lack a protocol."""

_NO_PROTOCOL_NAME_FROM: Final = 7
"""From this version on a join that failed has no protocol, rather than one without a name."""


def join_refused(code: ErrorCode, version: int, member_id: str = "") -> JoinGroupResponse:
    """A join that failed."""
    name = None if version >= _NO_PROTOCOL_NAME_FROM else ""
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=name)


def joined(group: ClassicGroup, member_id: str, version: int) -> JoinGroupResponse:
    """A join that succeeded; the leader is told of all members."""
    is_leader = member_id == group.leader
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol if version >= _NULL_PROTOCOL_FROM else group.protocol or "",
        leader=group.leader or "",
        member_id=member_id,
        members=member_list(group) if is_leader else [],
    )


def member_list(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    """The members with what each says in the chosen protocol, for the leader to assign from."""
    return [
        JoinGroupResponseMember(
            member_id=each.member_id,
            group_instance_id=each.instance_id,
            metadata=each.metadata_in(group.protocol),
        )
        for each in group.members.values()
    ]


def sync_refused(code: ErrorCode) -> SyncGroupResponse:
    """A sync that failed."""
    return SyncGroupResponse(error_code=code)


def synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    """A member's assignment."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment
    )


def generation_record(
    group: ClassicGroup, now_ms: int, assignments: dict[str, bytes], *, stand_in: StandIn = None
) -> NewRecord:
    """The group's present generation with assignments; a stand-in takes a static member's place."""
    members = [
        stand_in if stand_in and each.instance_id == stand_in.instance_id else each
        for each in group.members.values()
    ]
    leader = group.leader
    if stand_in and group.static_members.get(stand_in.instance_id or "") == leader:
        leader = stand_in.member_id
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=leader,
        current_state_timestamp=now_ms,
        members=[
            _member_metadata(each, group.protocol, assignments.get(each.member_id, b""))
            for each in members
        ],
    )
    return group_record(group.group_id, value)


StandIn = ClassicMember | None


def empty_record(
    group_id: str, *, generation: int, protocol_type: str | None, now_ms: int
) -> NewRecord:
    """A generation without members."""
    value = GroupMetadataValue(
        protocol_type=protocol_type or "",
        generation=generation,
        protocol=None,
        leader=None,
        current_state_timestamp=now_ms,
    )
    return group_record(group_id, value)


def _member_metadata(
    member: ClassicMember, protocol: str | None, assignment: bytes
) -> MemberMetadata:
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata_in(protocol),
        assignment=assignment,
    )
