"""Syncs, heartbeats, departures and time-outs of a classic group's members, and its replay."""

from __future__ import annotations

from typing import Final

from ottla.coordination.decision import Ticket
from ottla.coordination.group import timer_keys
from ottla.coordination.group.classic_answers import generation_record, sync_refused, synced
from ottla.coordination.group.classic_group import ClassicGroup, ClassicState
from ottla.coordination.group.classic_join import MEMBER_ID_REQUIRED_FROM
from ottla.coordination.group.classic_member import ClassicMember
from ottla.coordination.group.classic_rebalance import ClassicRebalance, release
from ottla.coordination.group.outcome import Call, Outcome, Parked
from ottla.errors import ErrorCode, RequestFailed
from ottla.protocol.messages.group_records import GroupMetadataValue, MemberMetadata
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.leave_group import MemberIdentity, MemberResponse
from ottla.protocol.messages.sync_group import SyncGroupRequest

_PROTOCOL_NAMED_FROM: Final = 5
"""From this version on SyncGroup must name the protocol the member believes was chosen."""


class ClassicMembership:
    """Decides what members of a classic group may do after they have joined."""

    __slots__ = ("_rebalance",)

    def __init__(self, rebalance: ClassicRebalance) -> None:
        self._rebalance = rebalance

    def sync(self, group: ClassicGroup, request: SyncGroupRequest, call: Call) -> None:
        """Hand a member its assignment, once the leader has handed it in."""
        try:
            member = self._check_sync(group, request, call.version)
        except RequestFailed as refusal:
            call.answer(sync_refused(refusal.code))
            return
        if group.state is ClassicState.STABLE:
            self._note_sync(group, member, call.outcome)
            self._rebalance.expect_heartbeat(group, member, call.outcome)
            call.answer(synced(group, member.assignment))
            return
        release(member, call.outcome, ErrorCode.REBALANCE_IN_PROGRESS)
        member.syncing = Parked(call.ticket, call.version)
        self._note_sync(group, member, call.outcome)
        if member.member_id == group.leader:
            self._assign(group, request, call.outcome)

    def _check_sync(
        self, group: ClassicGroup, request: SyncGroupRequest, version: int
    ) -> ClassicMember:
        if version >= _PROTOCOL_NAMED_FROM and not (
            request.protocol_type and request.protocol_name
        ):
            raise RequestFailed(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.is_empty:
            raise RequestFailed(ErrorCode.UNKNOWN_MEMBER_ID)
        member = group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise RequestFailed(ErrorCode.ILLEGAL_GENERATION)
        if _differs(request.protocol_type, group.protocol_type) or _differs(
            request.protocol_name, group.protocol
        ):
            raise RequestFailed(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.state is ClassicState.PREPARING:
            raise RequestFailed(ErrorCode.REBALANCE_IN_PROGRESS)
        return member

    def _note_sync(self, group: ClassicGroup, member: ClassicMember, outcome: Outcome) -> None:
        if member.member_id in group.unsynced:
            group.unsynced.remove(member.member_id)
            if not group.unsynced:
                outcome.stop_timer(timer_keys.sync(group.group_id))

    def _assign(self, group: ClassicGroup, request: SyncGroupRequest, outcome: Outcome) -> None:
        """Write the leader's assignment down; the members hear of it when it is committed."""
        assignments = {each.member_id: each.assignment for each in request.assignments}
        outcome.write(generation_record(group, outcome.now_ms, assignments))
        for member in group.members.values():
            if member.syncing is not None:
                parked, member.syncing = member.syncing, None
                assignment = assignments.get(member.member_id, b"")
                outcome.answer(parked.ticket, synced(group, assignment))
                self._rebalance.expect_heartbeat(group, member, outcome)

    def heartbeat(self, group: ClassicGroup, request: HeartbeatRequest, call: Call) -> None:
        """Keep a member's session alive and tell it whether to join again."""
        member = group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise RequestFailed(ErrorCode.ILLEGAL_GENERATION)
        self._rebalance.expect_heartbeat(group, member, call.outcome)
        is_rebalancing = group.state is ClassicState.PREPARING
        code = ErrorCode.REBALANCE_IN_PROGRESS if is_rebalancing else ErrorCode.NONE
        call.answer(HeartbeatResponse(error_code=code))

    def keep_alive(self, group: ClassicGroup, member_id: str, outcome: Outcome) -> None:
        """A commit of a member counts as a sign of life."""
        member = group.members.get(member_id)
        if member is not None and not member.is_new:
            self._rebalance.expect_heartbeat(group, member, outcome)

    def leave(
        self, group: ClassicGroup, leavers: list[MemberIdentity], outcome: Outcome
    ) -> list[MemberResponse]:
        """Take members out at their own wish or an administrator's."""
        responses = [
            MemberResponse(
                member_id=each.member_id,
                group_instance_id=each.group_instance_id,
                error_code=self._leave_one(group, each, outcome),
            )
            for each in leavers
        ]
        if any(each.error_code == ErrorCode.NONE for each in responses) and not group.is_empty:
            self._rebalance.rebalance(group, outcome)
        return responses

    def _leave_one(
        self, group: ClassicGroup, leaver: MemberIdentity, outcome: Outcome
    ) -> ErrorCode:
        member_id = leaver.member_id
        if not member_id and leaver.group_instance_id is not None:
            member_id = group.static_members.get(leaver.group_instance_id, "")
        if member_id in group.pending:
            group.remove(member_id)
            outcome.stop_timer(timer_keys.session(group.group_id, member_id))
            return ErrorCode.NONE
        try:
            member = group.check_member(member_id, leaver.group_instance_id)
        except RequestFailed as refusal:
            return refusal.code
        self._rebalance.remove(group, member, outcome)
        return ErrorCode.NONE

    def session_expired(self, group: ClassicGroup, member_id: str, outcome: Outcome) -> None:
        """A member, or an id that was given out, was not heard of in time."""
        if member_id in group.pending:
            group.remove(member_id)
            self._rebalance.complete_if_all_joined(group, outcome)
            return
        member = group.members.get(member_id)
        if member is None or member.is_waiting:
            return
        self._rebalance.remove(group, member, outcome)
        self._rebalance.rebalance(group, outcome)

    def forget(self, group: ClassicGroup, ticket: Ticket, outcome: Outcome) -> bool:
        """The client of a parked request went away; True where the request was of this group."""
        for member in group.members.values():
            if member.joining is not None and member.joining.ticket == ticket:
                version, member.joining = member.joining.version, None
                break
            if member.syncing is not None and member.syncing.ticket == ticket:
                member.syncing = None
                version = MEMBER_ID_REQUIRED_FROM
                break
        else:
            return False
        if member.is_new and version < MEMBER_ID_REQUIRED_FROM and member.instance_id is None:
            # Nobody was ever told this id, so nobody can come back for it.
            self._rebalance.remove(group, member, outcome)
            self._rebalance.rebalance(group, outcome)
        else:
            self._rebalance.expect_heartbeat(group, member, outcome)
        return True


def _differs(claimed: str | None, actual: str | None) -> bool:
    return claimed is not None and actual is not None and claimed != actual


def apply_generation(group: ClassicGroup, value: GroupMetadataValue) -> None:
    """Take a replayed record of the group: what it says is so from now on.

    On the broker that wrote it, what the record does not hold (all the protocols a member
    supports, requests that wait) is kept from the members that are there.
    """
    if group.members and not value.members and value.generation == group.generation:
        # It came out of an empty consumer group, and members have begun to join it.
        return
    known = group.members
    if group.replacement is not None:
        known = {**known, group.replacement.member_id: group.replacement}
        group.replacement = None
    group.members = {}
    group.static_members = {}
    group.leader = value.leader
    group.needs_rebalance = bool(value.members) and value.leader is None
    for each in value.members:
        member = known.get(each.member_id)
        if member is None or member.metadata_in(value.protocol) != each.subscription:
            member = _loaded_member(each, value.protocol)
        member.assignment = each.assignment
        group.add(member, value.protocol_type)
    group.protocol_type = value.protocol_type or None
    group.protocol = value.protocol
    group.generation = value.generation
    group.state = ClassicState.STABLE if value.members else ClassicState.EMPTY
    timestamp = value.current_state_timestamp
    group.state_timestamp_ms = None if timestamp < 0 else timestamp
    group.initial_delay_left_ms = None
    group.unsynced &= group.members.keys()
    group.note_subscriptions()


def _loaded_member(stored: MemberMetadata, protocol: str | None) -> ClassicMember:
    return ClassicMember(
        member_id=stored.member_id,
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        session_timeout_ms=stored.session_timeout,
        rebalance_timeout_ms=(
            stored.session_timeout if stored.rebalance_timeout < 0 else stored.rebalance_timeout
        ),
        protocols=((protocol or "", stored.subscription),),
    )
