"""The four requests of the classic protocol, for whichever kind of group they concern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.coordination.group.classic_answers import empty_record, join_refused, sync_refused
from ottla.coordination.group.classic_group import ClassicGroup
from ottla.coordination.group.classic_guests import ClassicGuests
from ottla.coordination.group.classic_join import ClassicJoin
from ottla.coordination.group.classic_membership import ClassicMembership
from ottla.coordination.group.classic_rebalance import ClassicRebalance
from ottla.coordination.group.consumer_group import ConsumerGroup
from ottla.coordination.group.consumer_records import group_gone
from ottla.coordination.group.groups import Groups
from ottla.coordination.group.outcome import Call, Outcome
from ottla.coordination.group.records import new_record
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

    __slots__ = ("_groups", "_guests", "_joins", "_settings", "members", "rebalance")

    def __init__(
        self,
        settings: GroupSettings,
        groups: Groups,
        guests: ClassicGuests,
        new_member_id: Callable[[str], str],
    ) -> None:
        self._settings = settings
        self._groups = groups
        self._guests = guests
        self.rebalance = ClassicRebalance(settings.group_initial_rebalance_delay_ms)
        self.members = ClassicMembership(self.rebalance)
        self._joins = ClassicJoin(self.rebalance, new_member_id, settings.group_max_size)

    def loaded(self, group: ClassicGroup, outcome: Outcome) -> None:
        """A group was read from the log: its members must be heard of, as if they had been now."""
        for member in group.members.values():
            self.rebalance.expect_heartbeat(group, member, outcome)
        if group.needs_rebalance or len(group.members) > self._settings.group_max_size:
            self.rebalance.prepare(group, outcome)

    def join(self, request: JoinGroupRequest, call: Call) -> None:
        """Decide a JoinGroup."""
        refusal = self._refuse_join(request)
        if refusal is not None:
            call.answer(join_refused(refusal, call.version, request.member_id))
            return
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup) and not group.is_empty:
            self._guests.join(group, request, call)
        elif isinstance(group, ClassicGroup):
            self._joins.join(group, request, call)
        else:
            self._join_first(group, request, call)

    def _join_first(self, old: ConsumerGroup | None, request: JoinGroupRequest, call: Call) -> None:
        """Join a group that is new, or was a consumer group until its last member left."""
        group = ClassicGroup(request.group_id)
        group.generation = old.epoch if old is not None else 0
        self._joins.join(group, request, call)
        if not group.members and not group.pending:
            return
        self._groups.put(group)
        if old is not None:
            outcome = call.outcome
            for change in group_gone(old):
                outcome.write(new_record(*change))
            outcome.write(
                empty_record(
                    request.group_id,
                    generation=group.generation,
                    protocol_type=old.protocol_type,
                    now_ms=outcome.now_ms,
                )
            )

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
        elif isinstance(group, ConsumerGroup):
            self._guests.sync(group, request, call)
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
            if isinstance(group, ConsumerGroup):
                self._guests.heartbeat(group, request, call)
            else:
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
        if isinstance(group, ConsumerGroup):
            return self._guests.leave(group, leavers, call.outcome)
        return self.members.leave(group, leavers, call.outcome)
