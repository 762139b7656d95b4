"""JoinGroup of a classic group: who may join, under which id, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.coordination.group import timer_keys
from ottla.coordination.group.classic_answers import (
    generation_record,
    join_refused,
    joined,
    member_list,
)
from ottla.coordination.group.classic_group import ClassicGroup, ClassicState
from ottla.coordination.group.classic_member import ClassicMember, Protocols
from ottla.coordination.group.classic_rebalance import ClassicRebalance, release
from ottla.coordination.group.embedded_protocol import differ_in_topics
from ottla.coordination.group.outcome import Call, Parked
from ottla.errors import ErrorCode, RequestFailed
from ottla.protocol.messages.join_group import JoinGroupRequest

MEMBER_ID_REQUIRED_FROM: Final = 4
"""From this version on a new member must join a second time, with the id it was given."""
_SKIP_ASSIGNMENT_FROM: Final = 9
_NEW_MEMBER_TIMEOUT_MS: Final = 5 * 60_000
"""How long a member may wait in its first join: it may have gone, and it sends no heartbeats."""


def protocols_of(request: JoinGroupRequest) -> Protocols:
    """The protocols a request offers."""
    return tuple((each.name, each.metadata) for each in request.protocols)


class ClassicJoin:
    """Decides about JoinGroup."""

    __slots__ = ("_new_member_id", "_rebalance", "_size_max")

    def __init__(
        self, rebalance: ClassicRebalance, new_member_id: Callable[[str], str], size_max: int
    ) -> None:
        self._rebalance = rebalance
        self._new_member_id = new_member_id
        self._size_max = size_max

    def join(self, group: ClassicGroup, request: JoinGroupRequest, call: Call) -> None:
        """Take in a member, new or known; the answer may come later."""
        if not self._has_room_for(group, request.member_id):
            call.answer(join_refused(ErrorCode.GROUP_MAX_SIZE_REACHED, call.version))
            self._drop(group, request.member_id, call)
        elif not group.supports(request.protocol_type, [each.name for each in request.protocols]):
            call.answer(
                join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, call.version, request.member_id)
            )
        elif request.member_id:
            self._join_again(group, request, call)
        elif request.group_instance_id is not None:
            self._join_static(group, request, call)
        else:
            self._join_new(group, request, call)

    def _has_room_for(self, group: ClassicGroup, member_id: str) -> bool:
        member = group.members.get(member_id)
        match group.state:
            case ClassicState.EMPTY:
                return True
            case ClassicState.PREPARING:
                is_in = member is not None and member.joining is not None
                return is_in or group.joined_count < self._size_max
            case _:
                return member is not None or len(group.members) < self._size_max

    def _drop(self, group: ClassicGroup, member_id: str, call: Call) -> None:
        if not member_id:
            return
        member = group.members.get(member_id)
        if member is not None:
            self._rebalance.remove(group, member, call.outcome)
        else:
            group.remove(member_id)
        self._rebalance.complete_if_all_joined(group, call.outcome)

    def _join_new(self, group: ClassicGroup, request: JoinGroupRequest, call: Call) -> None:
        member_id = self._new_member_id(call.caller.client_id)
        if call.version < MEMBER_ID_REQUIRED_FROM:
            self._add(group, request, call, member_id)
            return
        group.pending.add(member_id)
        key = timer_keys.session(group.group_id, member_id)
        call.outcome.start_timer(key, request.session_timeout_ms)
        call.answer(join_refused(ErrorCode.MEMBER_ID_REQUIRED, call.version, member_id))

    def _join_static(self, group: ClassicGroup, request: JoinGroupRequest, call: Call) -> None:
        assert request.group_instance_id is not None
        member_id = self._new_member_id(request.group_instance_id)
        old_member_id = group.static_members.get(request.group_instance_id)
        if old_member_id is None:
            self._add(group, request, call, member_id)
            return
        old = group.members[old_member_id]
        newcomer = self._new_member(request, call, member_id)
        newcomer.assignment = old.assignment
        if group.state is ClassicState.STABLE and _is_as_before(group, old, newcomer):
            self._replace_quietly(group, old, newcomer, call)
        else:
            self._replace(group, old, newcomer, call)

    def _replace_quietly(
        self, group: ClassicGroup, old: ClassicMember, newcomer: ClassicMember, call: Call
    ) -> None:
        """A static member came back and nothing else changes: no rebalance, only a new id.

        Nothing changes before the record is replayed, so a failed write leaves the old member.
        """
        outcome = call.outcome
        group.replacement = newcomer
        assignments = {each.member_id: each.assignment for each in group.members.values()}
        assignments[newcomer.member_id] = old.assignment
        outcome.write(generation_record(group, outcome.now_ms, assignments, stand_in=newcomer))
        outcome.stop_timer(timer_keys.session(group.group_id, old.member_id))
        self._rebalance.expect_heartbeat(group, newcomer, outcome)
        was_leader = group.leader == old.member_id
        answer = joined(group, newcomer.member_id, call.version)
        if was_leader and call.version >= _SKIP_ASSIGNMENT_FROM:
            # The leader is told of the members, and that it must not assign them anew.
            answer.leader = newcomer.member_id
            answer.members = member_list(group)
            for each in answer.members:
                if each.member_id == old.member_id:
                    each.member_id = newcomer.member_id
                    each.metadata = newcomer.metadata_in(group.protocol)
            answer.skip_assignment = True
        call.answer(answer)

    def _replace(
        self, group: ClassicGroup, old: ClassicMember, newcomer: ClassicMember, call: Call
    ) -> None:
        """A static member came back while the group is moving, or changes what it is based on."""
        outcome = call.outcome
        release(old, outcome, ErrorCode.FENCED_INSTANCE_ID)
        outcome.stop_timer(timer_keys.session(group.group_id, old.member_id))
        newcomer.joining = Parked(call.ticket, call.version)
        group.replace(old.member_id, newcomer)
        self._rebalance.expect_heartbeat(group, newcomer, outcome)
        self._rebalance.rebalance(group, outcome)

    def _join_again(self, group: ClassicGroup, request: JoinGroupRequest, call: Call) -> None:
        member_id = request.member_id
        if member_id in group.pending:
            self._add(group, request, call, member_id)
            return
        try:
            member = group.check_member(member_id, request.group_instance_id)
        except RequestFailed as refusal:
            call.answer(join_refused(refusal.code, call.version, member_id))
            return
        protocols = protocols_of(request)
        is_unchanged = member.protocols == protocols
        match group.state:
            case ClassicState.COMPLETING if is_unchanged:
                # The answer to its first join was lost: the generation is still the same.
                call.answer(joined(group, member_id, call.version))
            case ClassicState.STABLE if is_unchanged and member_id != group.leader:
                call.answer(joined(group, member_id, call.version))
            case ClassicState.EMPTY:
                call.answer(join_refused(ErrorCode.UNKNOWN_MEMBER_ID, call.version, member_id))
            case _:
                self._update(group, member, request, call)

    def _update(
        self, group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest, call: Call
    ) -> None:
        outcome = call.outcome
        release(member, outcome, ErrorCode.REBALANCE_IN_PROGRESS)
        member.protocols = protocols_of(request)
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = rebalance_timeout_of(request)
        member.joining = Parked(call.ticket, call.version)
        self._rebalance.rebalance(group, outcome)

    def _add(
        self, group: ClassicGroup, request: JoinGroupRequest, call: Call, member_id: str
    ) -> None:
        member = self._new_member(request, call, member_id)
        member.is_new = True
        member.joining = Parked(call.ticket, call.version)
        if group.state is ClassicState.PREPARING and group.initial_delay_left_ms is not None:
            group.has_newcomer = True
        group.add(member, request.protocol_type)
        key = timer_keys.session(group.group_id, member_id)
        call.outcome.start_timer(key, _NEW_MEMBER_TIMEOUT_MS)
        self._rebalance.rebalance(group, call.outcome)

    def _new_member(self, request: JoinGroupRequest, call: Call, member_id: str) -> ClassicMember:
        return ClassicMember(
            member_id=member_id,
            instance_id=request.group_instance_id,
            client_id=call.caller.client_id,
            client_host=call.caller.client_host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_of(request),
            protocols=protocols_of(request),
        )


def _is_as_before(group: ClassicGroup, old: ClassicMember, newcomer: ClassicMember) -> bool:
    """Whether a returning static member leaves protocol and subscriptions as they are."""
    if group.select_protocol(instead=newcomer) != group.protocol:
        return False
    return not (
        group.uses_consumer_protocol
        and differ_in_topics(old.metadata_in(group.protocol), newcomer.metadata_in(group.protocol))
    )


def rebalance_timeout_of(request: JoinGroupRequest) -> int:
    """How long a member may take to join again; the first version of the API had only one time."""
    if request.rebalance_timeout_ms < 0:
        return request.session_timeout_ms
    return request.rebalance_timeout_ms
