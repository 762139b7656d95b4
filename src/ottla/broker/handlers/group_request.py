"""Requests about one group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit and others.

The shard that keeps the group decides; this only finds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.broker.group_coordinator import GroupCoordinator
from ottla.broker.request import Outcome, Parked, RequestContext
from ottla.coordination.decision import Caller, Decision, Ticket
from ottla.coordination.group.failures import refused
from ottla.coordination.group.shard import GroupShard
from ottla.errors import ErrorCode, RequestFailed
from ottla.protocol.message import Message
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

_LOADING: Final = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

Decide = Callable[[GroupShard, Any, Caller, Ticket, int], Decision]


def caller_of(context: RequestContext) -> Caller:
    """Who asks, as coordinators want to know it."""
    return Caller(context.client_id or "", f"/{context.peer.host}", context.version)


class GroupRequestHandler:
    """Passes a request to the shard of its group."""

    def __init__(self, coordinator: GroupCoordinator, decide: Decide) -> None:
        self._coordinator = coordinator
        self._decide = decide

    def handle(self, request: Any, context: RequestContext) -> Outcome:
        try:
            running = self._coordinator.find(request.group_id)
        except RequestFailed as refusal:
            if isinstance(request, HeartbeatRequest) and refusal.code is _LOADING:
                return HeartbeatResponse()  # Its session begins anew when the group is loaded.
            raise
        groups, caller, decide = running.shard.groups, caller_of(context), self._decide
        answer = running.runtime.answer(
            lambda ticket, now_ms: decide(groups, request, caller, ticket, now_ms)
        )
        return answer if isinstance(answer, Message) else Parked(answer)

    def refuse(self, request: Any, code: ErrorCode) -> Message:
        return refused(request, code)
