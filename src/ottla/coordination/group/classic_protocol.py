"""The four requests of the classic protocol, for whichever kind of group they concern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.coordination.group.classic_answers import join_refused, sync_refused
from ottla.coordination.group.classic_group import ClassicGroup
from ottla.coordination.group.classic_join import ClassicJoin
from ottla.coordination.group.classic_membership import ClassicMembership
from ottla.coordination.group.classic_rebalance import ClassicRebalance
from ottla.coordination.group.groups import Groups
from ottla.coordination.group.outcome import Call, Outcome
from ottla.errors import ErrorCode, RequestFailed
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest
from ottla.settings.coordination import GroupSettings

_MANY_LEAVERS_FROM: Final = 3
"""From this version on LeaveGroup names several members."""


class ClassicProtocol:
    """Decides about JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""

    __slots__ = ("_groups", "_joins", "_settings", "members", "rebalance")

    def __init__(
        self, settings: GroupSettings, groups: Groups, new_member_id: Callable[[str], str]
    ) -> None:
        self._settings = settings
        self._groups = groups
        self.rebalance = ClassicRebalance(settings.group_initial_rebalance_delay_ms)
        self.members = ClassicMembership(self.rebalance)
        self._joins = ClassicJoin(self.rebalance, new_member_id, settings.group_max_size)

    def loaded(self, group: ClassicGroup, outcome: Outcome) -> None:
        """A group was read from the log: its members must be heard of, as if they had been now."""
        for member in group.members.values():
            self.rebalance.expect_heartbeat(group, member, outcome)
        if len(group.members) > self._settings.group_max_size:
            self.rebalance.prepare(group, outcome)

    def join(self, request: JoinGroupRequest, call: Call) -> None:
        """Decide a JoinGroup."""
        refusal = self._refuse_join(request)
        if refusal is not None:
            call.answer(join_refused(refusal, request.member_id))
            return
        is_made_now = self._groups.get(request.group_id) is None
        group = self._groups.classic(request.group_id)
        self._joins.join(group, request, call)
        if is_made_now and not group.members and not group.pending:
            self._groups.remove(request.group_id)

    def _refuse_join(self, request: JoinGroupRequest) -> ErrorCode | None:
        settings = self._settings
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        shortest, longest = (
            settings.group_min_session_timeout_ms,
            settings.group_max_session_timeout_ms,
        )
        if not shortest <= request.session_timeout_ms <= longest:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if self._groups.get(request.group_id) is None and request.member_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return None

    def sync(self, request: SyncGroupRequest, call: Call) -> None:
        """Decide a SyncGroup."""
        group = self._groups.get(request.group_id)
        if not request.group_id:
            call.answer(sync_refused(ErrorCode.INVALID_GROUP_ID))
        elif group is None:
            call.answer(sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            self.members.sync(group, request, call)

    def heartbeat(self, request: HeartbeatRequest, call: Call) -> None:
        """Decide a Heartbeat."""
        try:
            if not request.group_id:
                raise RequestFailed(ErrorCode.INVALID_GROUP_ID)
            group = self._groups.get(request.group_id)
            if group is None:
                raise RequestFailed(ErrorCode.UNKNOWN_MEMBER_ID)
            self.members.heartbeat(group, request, call)
        except RequestFailed as refusal:
            call.answer(HeartbeatResponse(error_code=refusal.code))

    def leave(self, request: LeaveGroupRequest, call: Call) -> None:
        """Decide a LeaveGroup."""
        if not request.group_id:
            call.answer(LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
            return
        leavers = request.members
        if call.version < _MANY_LEAVERS_FROM:
            leavers = [MemberIdentity(member_id=request.member_id)]
        responses = self._leave(request.group_id, leavers, call)
        if call.version < _MANY_LEAVERS_FROM:
            call.answer(LeaveGroupResponse(error_code=responses[0].error_code))
        else:
            call.answer(LeaveGroupResponse(members=responses))

    def _leave(
        self, group_id: str, leavers: list[MemberIdentity], call: Call
    ) -> list[MemberResponse]:
        group = self._groups.get(group_id)
        if group is None:
            return [
                MemberResponse(
                    member_id=each.member_id,
                    group_instance_id=each.group_instance_id,
                    error_code=ErrorCode.UNKNOWN_MEMBER_ID,
                )
                for each in leavers
            ]
        return self.members.leave(group, leavers, call.outcome)
