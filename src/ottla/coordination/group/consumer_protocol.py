"""ConsumerGroupHeartbeat: joining, staying in and leaving a group of the consumer protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from ottla.coordination.decision import TimerKey
from ottla.coordination.group import timer_keys
from ottla.coordination.group.assignors.spec import Partitions, partitions_by_topic
from ottla.coordination.group.classic_group import ClassicGroup
from ottla.coordination.group.consumer_departure import ConsumerDeparture
from ottla.coordination.group.consumer_group import ConsumerGroup
from ottla.coordination.group.consumer_member import (
    JOINING,
    LEFT_FOR_A_WHILE,
    LEFT_FOR_GOOD,
    ConsumerMember,
    MemberState,
)
from ottla.coordination.group.consumer_records import (
    assignment_change,
    member_change,
    member_gone,
    target_change,
)
from ottla.coordination.group.groups import Groups
from ottla.coordination.group.outcome import Call, Outcome
from ottla.coordination.group.stage import Stage
from ottla.coordination.group.target import Targets
from ottla.coordination.group.topic_pattern import TopicPattern
from ottla.coordination.group.upgrade import upgrade
from ottla.errors import ErrorCode, InvalidRequest, RequestFailed
from ottla.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.settings.coordination import GroupSettings
from ottla.settings.group import OwnGroupSettings

_OWN_MEMBER_ID_FROM: Final = 1
"""From this version on a member brings its own id."""


class ConsumerProtocol:
    """Decides about ConsumerGroupHeartbeat."""

    __slots__ = (
        "_departure",
        "_groups",
        "_new_member_id",
        "_own_settings",
        "_settings",
        "_targets",
    )

    def __init__(
        self,
        settings: GroupSettings,
        groups: Groups,
        targets: Targets,
        departure: ConsumerDeparture,
        new_member_id: Callable[[str], str],
        *,
        own_settings: Callable[[str], OwnGroupSettings] | None = None,
    ) -> None:
        self._settings = settings
        shared = OwnGroupSettings.from_overrides({}, settings)
        self._own_settings = own_settings or (lambda _group_id: shared)
        self._groups = groups
        self._targets = targets
        self._departure = departure
        self._new_member_id = new_member_id

    def heartbeat(self, request: ConsumerGroupHeartbeatRequest, call: Call) -> None:
        """Decide a ConsumerGroupHeartbeat."""
        try:
            check(request, call.version, self._settings)
            if request.member_epoch in (LEFT_FOR_GOOD, LEFT_FOR_A_WHILE):
                self._leave(request, call)
            else:
                self._beat(request, call)
        except RequestFailed as refusal:
            call.answer(
                ConsumerGroupHeartbeatResponse(
                    error_code=refusal.code, error_message=refusal.message
                )
            )

    # --- joining and staying ----------------------------------------------------------------------

    def _beat(self, request: ConsumerGroupHeartbeatRequest, call: Call) -> None:
        stage = self._stage(request, call.outcome)
        owned = owned_partitions(request)
        before = self._find(stage, request, owned, call)
        told = _told(before, request, call)
        member = self._targets.advance(stage, told, owned)
        self._set_timers(stage.group, before, member, call.outcome)
        own_settings = self._own_settings(request.group_id)
        answer = ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=own_settings.consumer_heartbeat_interval_ms,
        )
        if (
            _is_full(request)
            or request.member_epoch != before.epoch
            or member.assigned.keys() != before.assigned.keys()
        ):
            answer.assignment = Assignment(
                topic_partitions=[
                    TopicPartitions(topic_id=topic_id, partitions=indexes)
                    for topic_id, indexes in partitions_by_topic(member.assigned).items()
                ]
            )
        call.answer(answer)

    def _stage(self, request: ConsumerGroupHeartbeatRequest, outcome: Outcome) -> Stage:
        """The group to decide on: there already, new, or made of a classic one."""
        group = self._groups.get(request.group_id)
        is_joining = request.member_epoch == JOINING
        if isinstance(group, ConsumerGroup):
            is_full = len(group.members) >= self._settings.group_consumer_max_size
            if is_full and request.member_id not in group.members:
                raise RequestFailed(ErrorCode.GROUP_MAX_SIZE_REACHED)
            return Stage(group, outcome)
        if not is_joining:
            raise RequestFailed(ErrorCode.GROUP_ID_NOT_FOUND)
        if isinstance(group, ClassicGroup):
            return upgrade(group, self._targets.topics, outcome, self._settings)
        return Stage(ConsumerGroup(request.group_id), outcome, is_new=True)

    def _find(
        self,
        stage: Stage,
        request: ConsumerGroupHeartbeatRequest,
        owned: Partitions | None,
        call: Call,
    ) -> ConsumerMember:
        """The member that sends the request, as it was before it; a new one may be blank."""
        group = stage.group
        is_joining = request.member_epoch == JOINING
        if not is_joining:
            member = group.check_member(request.member_id, request.instance_id)
            _check_epoch(member, request.member_epoch, owned)
            return member
        member_id = request.member_id or self._new_member_id(call.caller.client_id)
        instance_id = request.instance_id
        holder = group.static_members.get(instance_id) if instance_id is not None else None
        if holder is not None and holder != member_id:
            return replace_static(stage, group.members[holder], member_id, is_classic=False)
        return group.members.get(member_id) or ConsumerMember(member_id)

    def _set_timers(
        self,
        group: ConsumerGroup,
        before: ConsumerMember,
        member: ConsumerMember,
        outcome: Outcome,
    ) -> None:
        session = timer_keys.session(group.group_id, member.member_id)
        own_settings = self._own_settings(group.group_id)
        outcome.start_timer(session, own_settings.consumer_session_timeout_ms)
        revocation = timer_keys.revocation(group.group_id, member.member_id)
        was_revoking = before.state is MemberState.UNREVOKED
        if member.state is MemberState.UNREVOKED:
            if not was_revoking or member.epoch != before.epoch:
                outcome.start_timer(revocation, member.rebalance_timeout_ms)
        elif was_revoking:
            outcome.stop_timer(revocation)

    # --- leaving ----------------------------------------------------------------------------------

    def _leave(self, request: ConsumerGroupHeartbeatRequest, call: Call) -> None:
        group = self._groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            raise RequestFailed(ErrorCode.GROUP_ID_NOT_FOUND)
        member = group.check_member(request.member_id, request.instance_id)
        if request.member_epoch == LEFT_FOR_A_WHILE:
            away = replace(member, epoch=LEFT_FOR_A_WHILE, revoking={})
            Stage(group, call.outcome).write(assignment_change(group.group_id, away))
            call.outcome.stop_timer(timer_keys.revocation(group.group_id, member.member_id))
        else:
            self._departure.remove(group, [member.member_id], call.outcome)
        call.answer(
            ConsumerGroupHeartbeatResponse(
                member_id=member.member_id, member_epoch=request.member_epoch
            )
        )

    def is_overdue(self, group: ConsumerGroup, key: TimerKey) -> bool:
        """Whether a member whose timer fired has to go."""
        member = group.members.get(key[2]) if len(key) > 2 else None
        if member is None:
            return False
        match key[0]:
            case timer_keys.REVOCATION:
                return member.state is MemberState.UNREVOKED
            case timer_keys.REJOIN:
                return member.member_id in group.awaiting_rejoin
            case _:
                return True

    # --- after trouble ----------------------------------------------------------------------------

    def expect_heartbeats(self, group: ConsumerGroup, outcome: Outcome) -> None:
        """Start every member's timers anew: the group was loaded, or a write failed."""
        group.awaiting_rejoin.clear()
        own_settings = self._own_settings(group.group_id)
        for member in group.members.values():
            timeout_ms = own_settings.consumer_session_timeout_ms
            if member.classic is not None:
                timeout_ms = member.classic.session_timeout_ms
            outcome.start_timer(timer_keys.session(group.group_id, member.member_id), timeout_ms)
            if member.state is MemberState.UNREVOKED and not member.is_classic:
                revocation = timer_keys.revocation(group.group_id, member.member_id)
                outcome.start_timer(revocation, member.rebalance_timeout_ms)


def replace_static(
    stage: Stage, holder: ConsumerMember, member_id: str, *, is_classic: bool
) -> ConsumerMember:
    """Let a member with another id take over an instance and all it has.

    Between members of the consumer protocol the old one must have left for a while first.
    """
    if not (is_classic or holder.is_classic) and holder.epoch != LEFT_FOR_A_WHILE:
        raise RequestFailed(ErrorCode.UNRELEASED_INSTANCE_ID)
    group_id = stage.group_id
    target = stage.group.target.get(holder.member_id, frozenset())
    for change in member_gone(group_id, holder.member_id):
        stage.write(change)
    for key in timer_keys.all_of_member(group_id, holder.member_id):
        stage.outcome.stop_timer(key)
    newcomer = replace(holder, member_id=member_id, epoch=JOINING, previous_epoch=JOINING)
    stage.write(member_change(group_id, newcomer))
    stage.write(target_change(group_id, member_id, target))
    stage.write(assignment_change(group_id, newcomer))
    return newcomer


def owned_partitions(request: ConsumerGroupHeartbeatRequest) -> Partitions | None:
    """What the member says it has; None where it says nothing."""
    if request.topic_partitions is None:
        return None
    return frozenset(
        (topic.topic_id, index) for topic in request.topic_partitions for index in topic.partitions
    )


def check(request: ConsumerGroupHeartbeatRequest, version: int, settings: GroupSettings) -> None:
    """Refuse a request that contradicts itself, whatever the group."""
    if not request.group_id:
        raise InvalidRequest("GroupId can't be empty.")
    if request.instance_id == "" or request.rack_id == "":
        raise InvalidRequest("InstanceId and RackId can't be empty where they are given.")
    if not request.member_id and (
        request.member_epoch != JOINING or version >= _OWN_MEMBER_ID_FROM
    ):
        raise InvalidRequest("MemberId can't be empty.")
    if request.member_epoch < LEFT_FOR_A_WHILE:
        raise InvalidRequest("MemberEpoch is invalid.")
    if request.member_epoch == LEFT_FOR_A_WHILE and request.instance_id is None:
        raise InvalidRequest("InstanceId can't be null for a static member that leaves.")
    if request.member_epoch == JOINING:
        _check_joining(request)
    if request.server_assignor is not None and (
        request.server_assignor not in settings.group_consumer_assignors
    ):
        raise RequestFailed(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"The assignor {request.server_assignor!r} is not one of those this broker offers: "
            f"{', '.join(settings.group_consumer_assignors)}.",
        )
    if request.subscribed_topic_regex:
        TopicPattern(request.subscribed_topic_regex)


def _check_joining(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise InvalidRequest("RebalanceTimeoutMs must be provided in the first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise InvalidRequest("TopicPartitions must be empty when joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise InvalidRequest("A subscription must be set in the first request.")


def _check_epoch(member: ConsumerMember, epoch: int, owned: Partitions | None) -> None:
    """Fence a member that is not at its epoch, unless the answer that moved it may be lost."""
    if epoch == member.epoch:
        return
    is_retry = epoch == member.previous_epoch and epoch < member.epoch
    if is_retry and owned is not None and owned <= member.assigned.keys():
        return
    raise RequestFailed(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {'smaller' if epoch < member.epoch else 'greater'} member"
        f" epoch ({epoch}) than the one known by the group coordinator ({member.epoch})."
        " The member must abandon all its partitions and rejoin.",
    )


def _told(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, call: Call
) -> ConsumerMember:
    """The member with what the request tells of it; what is left out stays as it is."""
    if _tells_nothing(request) and (member.client_id, member.client_host, member.classic) == (
        call.caller.client_id,
        call.caller.client_host,
        None,
    ):
        return member
    names, pattern = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=request.instance_id if request.instance_id is not None else member.instance_id,
        rack_id=request.rack_id if request.rack_id is not None else member.rack_id,
        client_id=call.caller.client_id,
        client_host=call.caller.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        assignor=request.server_assignor or member.assignor,
        topics=member.topics if names is None else tuple(sorted(set(names))),
        pattern=member.pattern if pattern is None else (pattern or None),
        classic=None,
    )


def _tells_nothing(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the request is a mere sign of life, as most are."""
    return (
        request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.rebalance_timeout_ms == -1
        and request.instance_id is None
        and request.rack_id is None
        and request.server_assignor is None
    )


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the request tells everything, so that the answer must too."""
    return request.member_epoch == JOINING or (
        request.rebalance_timeout_ms != -1
        and (
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        )
        and request.topic_partitions is not None
    )
