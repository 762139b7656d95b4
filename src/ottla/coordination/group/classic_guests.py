"""Members of the classic protocol in a consumer group: the old requests, answered by the new rules.

A guest's generation is its epoch. It is told to join again whenever there is a step for it to take,
and takes it by joining.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ottla.coordination.group import timer_keys
from ottla.coordination.group.classic_answers import join_refused, sync_refused
from ottla.coordination.group.classic_join import (
    MEMBER_ID_REQUIRED_FROM,
    protocols_of,
    rebalance_timeout_of,
)
from ottla.coordination.group.consumer_departure import ConsumerDeparture
from ottla.coordination.group.consumer_group import ConsumerGroup
from ottla.coordination.group.consumer_member import ClassicSide, ConsumerMember, MemberState
from ottla.coordination.group.consumer_protocol import replace_static
from ottla.coordination.group.downgrade import can_downgrade, downgrade
from ottla.coordination.group.embedded_assignment import assignment_bytes, owned_by
from ottla.coordination.group.embedded_protocol import read_subscription
from ottla.coordination.group.outcome import Call, Outcome
from ottla.coordination.group.stage import Stage
from ottla.coordination.group.target import Targets
from ottla.errors import ErrorCode, ProtocolError, RequestFailed
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.messages.leave_group import MemberIdentity, MemberResponse
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.settings.coordination import GroupSettings


class ClassicGuests:
    """Decides about requests of the classic protocol that concern a consumer group."""

    __slots__ = ("_departure", "_new_member_id", "_settings", "_targets")

    def __init__(
        self,
        settings: GroupSettings,
        targets: Targets,
        departure: ConsumerDeparture,
        new_member_id: Callable[[str], str],
    ) -> None:
        self._settings = settings
        self._targets = targets
        self._departure = departure
        self._new_member_id = new_member_id

    # --- join -------------------------------------------------------------------------------------

    def join(self, group: ConsumerGroup, request: JoinGroupRequest, call: Call) -> None:
        """Take in a guest, or let it take its next step."""
        try:
            self._join(group, request, call)
        except RequestFailed as refusal:
            call.answer(join_refused(refusal.code, call.version, request.member_id))
        except ProtocolError:
            call.answer(
                join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, call.version, request.member_id)
            )

    def _join(self, group: ConsumerGroup, request: JoinGroupRequest, call: Call) -> None:
        is_full = len(group.members) >= self._settings.group_consumer_max_size
        if is_full and request.member_id not in group.members:
            raise RequestFailed(ErrorCode.GROUP_MAX_SIZE_REACHED)
        names = [each.name for each in request.protocols]
        if not group.supports_classic(request.protocol_type, names):
            raise RequestFailed(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        subscription = read_subscription(request.protocols[0].metadata)
        is_dynamic = request.group_instance_id is None
        if is_dynamic and not request.member_id and call.version >= MEMBER_ID_REQUIRED_FROM:
            member_id = self._new_member_id(call.caller.client_id)
            call.answer(join_refused(ErrorCode.MEMBER_ID_REQUIRED, call.version, member_id))
            return
        stage = Stage(group, call.outcome)
        told = replace(
            self._find(stage, request, call),
            instance_id=request.group_instance_id,
            rack_id=subscription.rack_id,
            client_id=call.caller.client_id,
            client_host=call.caller.client_host,
            rebalance_timeout_ms=rebalance_timeout_of(request),
            topics=tuple(sorted(set(subscription.topics))),
            pattern=None,
            assignor=None,
            classic=ClassicSide(request.session_timeout_ms, protocols_of(request)),
        )
        member = self._targets.advance(stage, told, owned_by(subscription, self._targets.topics))
        self._welcome(group, stage, member, call)

    def _find(self, stage: Stage, request: JoinGroupRequest, call: Call) -> ConsumerMember:
        """The guest as it was before the request; a new one is blank."""
        group, instance_id = stage.group, request.group_instance_id
        if instance_id is None:
            member_id = request.member_id or self._new_member_id(call.caller.client_id)
            return group.members.get(member_id) or ConsumerMember(member_id)
        if request.member_id:
            return group.check_member(request.member_id, instance_id)
        member_id = self._new_member_id(instance_id)
        holder = group.static_members.get(instance_id)
        if holder is None:
            return ConsumerMember(member_id)
        return replace_static(stage, group.members[holder], member_id, is_classic=True)

    def _welcome(
        self, group: ConsumerGroup, stage: Stage, member: ConsumerMember, call: Call
    ) -> None:
        outcome, group_id, member_id = call.outcome, group.group_id, member.member_id
        assert member.classic is not None
        group.awaiting_rejoin.discard(member_id)
        outcome.stop_timer(timer_keys.rejoin(group_id, member_id))
        generation = member.epoch
        if can_downgrade(stage.group, frozenset(), self._settings):
            # It took the place of the last member of the new protocol.
            downgrade(stage, frozenset(), self._targets.topics)
            generation = stage.group.epoch
        else:
            session_ms = member.classic.session_timeout_ms
            outcome.start_timer(timer_keys.session(group_id, member_id), session_ms)
            resync = timer_keys.resync(group_id, member_id)
            outcome.start_timer(resync, member.rebalance_timeout_ms)
        call.answer(
            JoinGroupResponse(
                generation_id=generation,
                protocol_type=group.protocol_type,
                protocol_name=member.classic.protocols[0][0],
                member_id=member_id,
            )
        )

    # --- sync and heartbeat -----------------------------------------------------------------------

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest, call: Call) -> None:
        """Hand a guest its assignment."""
        try:
            member = self._check(
                group, request.member_id, request.group_instance_id, request.generation_id
            )
            self._check_sync(group, member, request, call.outcome)
        except RequestFailed as refusal:
            call.answer(sync_refused(refusal.code))
            return
        assert member.classic is not None
        outcome = call.outcome
        outcome.stop_timer(timer_keys.resync(group.group_id, member.member_id))
        session = timer_keys.session(group.group_id, member.member_id)
        outcome.start_timer(session, member.classic.session_timeout_ms)
        call.answer(
            SyncGroupResponse(
                protocol_type=group.protocol_type,
                protocol_name=member.classic.protocols[0][0],
                assignment=assignment_bytes(member, self._targets.topics),
            )
        )

    def _check(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> ConsumerMember:
        member = group.check_member(member_id, instance_id)
        if not member.is_classic:
            raise RequestFailed(ErrorCode.UNKNOWN_MEMBER_ID)
        if generation != member.epoch:
            raise RequestFailed(ErrorCode.ILLEGAL_GENERATION)
        return member

    def _check_sync(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        request: SyncGroupRequest,
        outcome: Outcome,
    ) -> None:
        assert member.classic is not None
        if request.protocol_type not in (None, group.protocol_type) or (
            request.protocol_name not in (None, member.classic.protocols[0][0])
        ):
            raise RequestFailed(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.epoch > member.epoch and member.state is not MemberState.UNREVOKED:
            self._expect_rejoin(group, member, outcome)
            raise RequestFailed(ErrorCode.REBALANCE_IN_PROGRESS)

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest, call: Call) -> None:
        """Keep a guest's session alive and tell it whether there is a step for it to take."""
        member = self._check(
            group, request.member_id, request.group_instance_id, request.generation_id
        )
        assert member.classic is not None
        session = timer_keys.session(group.group_id, member.member_id)
        call.outcome.start_timer(session, member.classic.session_timeout_ms)
        code = ErrorCode.NONE
        if (
            member.epoch < group.epoch
            or member.state is MemberState.UNREVOKED
            or (member.state is MemberState.UNRELEASED and not group.awaits_others(member))
        ):
            code = ErrorCode.REBALANCE_IN_PROGRESS
            self._expect_rejoin(group, member, call.outcome)
        call.answer(HeartbeatResponse(error_code=code))

    def _expect_rejoin(
        self, group: ConsumerGroup, member: ConsumerMember, outcome: Outcome
    ) -> None:
        if member.member_id not in group.awaiting_rejoin:
            group.awaiting_rejoin.add(member.member_id)
            rejoin = timer_keys.rejoin(group.group_id, member.member_id)
            outcome.start_timer(rejoin, member.rebalance_timeout_ms)

    # --- leave ------------------------------------------------------------------------------------

    def leave(
        self, group: ConsumerGroup, leavers: list[MemberIdentity], outcome: Outcome
    ) -> list[MemberResponse]:
        """Take members out: guests at their own wish, anybody at an administrator's."""
        responses = []
        leaving: dict[str, None] = {}
        for each in leavers:
            member_id = each.member_id
            if not member_id and each.group_instance_id is not None:
                member_id = group.static_members.get(each.group_instance_id, "")
            code = ErrorCode.NONE
            try:
                member = group.check_member(member_id, each.group_instance_id)
                leaving[member.member_id] = None
            except RequestFailed as refusal:
                code = refusal.code
            responses.append(
                MemberResponse(
                    member_id=each.member_id,
                    group_instance_id=each.group_instance_id,
                    error_code=code,
                )
            )
        if leaving:
            self._departure.remove(group, list(leaving), outcome)
        return responses
