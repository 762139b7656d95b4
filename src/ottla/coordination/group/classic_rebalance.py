"""How a classic group moves from one generation to the next.

    EMPTY ── first join, after a delay ──┐
    STABLE ── a member comes, goes ──> PREPARING ── all joined, or time is up ──> COMPLETING
      ^                                   ^                                          │
      └────── the leader's assignment ────┼──────────────────────────────────────────┘
                                          └── a member comes, goes, or does not sync

A group leaves COMPLETING for STABLE, and PREPARING for EMPTY, when a record says so: see replay.
"""

from __future__ import annotations

from typing import Final

from ottla.coordination.group import timer_keys
from ottla.coordination.group.classic_answers import (
    empty_record,
    join_refused,
    joined,
    sync_refused,
)
from ottla.coordination.group.classic_group import ClassicGroup, ClassicState
from ottla.coordination.group.classic_member import ClassicMember
from ottla.coordination.group.outcome import Outcome
from ottla.errors import ErrorCode

_WRITE_RETRY_MS: Final = 1000
"""When to try again to write down that a group is empty."""


class ClassicRebalance:
    """The steps of a rebalance of a classic group."""

    __slots__ = ("_initial_delay_ms",)

    def __init__(self, initial_delay_ms: int) -> None:
        self._initial_delay_ms = initial_delay_ms

    def rebalance(self, group: ClassicGroup, outcome: Outcome) -> None:
        """Start a rebalance because of a change, or go on with the one under way."""
        if group.state is ClassicState.PREPARING:
            self.complete_if_all_joined(group, outcome)
        else:
            self.prepare(group, outcome)

    def prepare(self, group: ClassicGroup, outcome: Outcome) -> None:
        """Ask all members to join again."""
        if group.state is ClassicState.COMPLETING:
            self._cancel_syncs(group, outcome)
        group.unsynced.clear()
        outcome.stop_timer(timer_keys.sync(group.group_id))
        is_first = group.is_empty
        group.state = ClassicState.PREPARING
        group.needs_rebalance = False
        if is_first:
            group.has_newcomer = False
            group.initial_delay_left_ms = max(
                group.rebalance_timeout_ms - self._initial_delay_ms, 0
            )
            outcome.start_timer(timer_keys.join(group.group_id), self._initial_delay_ms)
        elif group.have_all_joined():
            self.complete_join(group, outcome)
        else:
            outcome.start_timer(timer_keys.join(group.group_id), group.rebalance_timeout_ms)

    def complete_if_all_joined(self, group: ClassicGroup, outcome: Outcome) -> None:
        """End the join phase where nobody is missing; a first one waits its delay out."""
        if group.state is not ClassicState.PREPARING or not group.have_all_joined():
            return
        if group.initial_delay_left_ms is None or not group.members:
            self.complete_join(group, outcome)

    def join_time_is_up(self, group: ClassicGroup, outcome: Outcome) -> None:
        """End the join phase, or prolong a first one in which members are still arriving."""
        if group.state is not ClassicState.PREPARING:
            return
        left_ms = group.initial_delay_left_ms
        if left_ms and group.has_newcomer:
            group.has_newcomer = False
            delay_ms = min(self._initial_delay_ms, left_ms)
            group.initial_delay_left_ms = left_ms - delay_ms
            outcome.start_timer(timer_keys.join(group.group_id), delay_ms)
        else:
            self.complete_join(group, outcome)

    def sync_time_is_up(self, group: ClassicGroup, outcome: Outcome) -> None:
        """Put out the members that joined the generation and never asked for their assignment."""
        if group.state not in (ClassicState.COMPLETING, ClassicState.STABLE) or not group.unsynced:
            return
        for member_id in tuple(group.unsynced):
            self.remove(group, group.members[member_id], outcome)
        self.prepare(group, outcome)

    def complete_join(self, group: ClassicGroup, outcome: Outcome) -> None:
        """End the join phase with the members that are there."""
        outcome.stop_timer(timer_keys.join(group.group_id))
        for member in tuple(group.members.values()):
            if member.joining is None and member.instance_id is None:
                self.remove(group, member, outcome)
        if not group.members:
            record = empty_record(
                group.group_id,
                generation=group.generation + 1,
                protocol_type=group.protocol_type,
                now_ms=outcome.now_ms,
            )
            outcome.write(record)
        elif not group.elect_joined_leader():
            # Only static members are left and none of them is here: their sessions decide.
            outcome.start_timer(timer_keys.join(group.group_id), group.rebalance_timeout_ms)
        else:
            self._begin_generation(group, outcome)

    def _begin_generation(self, group: ClassicGroup, outcome: Outcome) -> None:
        group.generation += 1
        group.protocol = group.select_protocol()
        group.note_subscriptions()
        group.state = ClassicState.COMPLETING
        group.initial_delay_left_ms = None
        for member in group.members.values():
            if member.joining is not None:
                parked, member.joining = member.joining, None
                outcome.answer(parked.ticket, joined(group, member.member_id, parked.version))
            member.is_new = False
            self.expect_heartbeat(group, member, outcome)
        group.unsynced = set(group.members)
        outcome.start_timer(timer_keys.sync(group.group_id), group.rebalance_timeout_ms)

    def _cancel_syncs(self, group: ClassicGroup, outcome: Outcome) -> None:
        for member in group.members.values():
            if member.syncing is not None:
                parked, member.syncing = member.syncing, None
                outcome.answer(parked.ticket, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
                self.expect_heartbeat(group, member, outcome)

    def remove(
        self,
        group: ClassicGroup,
        member: ClassicMember,
        outcome: Outcome,
        code: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID,
    ) -> None:
        """Take a member out; whatever it waits for ends with an error."""
        release(member, outcome, code)
        group.remove(member.member_id)
        outcome.stop_timer(timer_keys.session(group.group_id, member.member_id))

    def expect_heartbeat(
        self, group: ClassicGroup, member: ClassicMember, outcome: Outcome
    ) -> None:
        """Start a member's session anew."""
        key = timer_keys.session(group.group_id, member.member_id)
        outcome.start_timer(key, member.session_timeout_ms)

    def write_failed(self, group: ClassicGroup, outcome: Outcome) -> None:
        """The group's record was not written: the generation it spoke of does not come to be.

        The timers of the failed decision were not set either.
        """
        group.replacement = None
        for member in group.members.values():
            self.expect_heartbeat(group, member, outcome)
        if group.state is ClassicState.COMPLETING:
            self.prepare(group, outcome)
        elif group.state is ClassicState.PREPARING and not group.members:
            outcome.start_timer(timer_keys.join(group.group_id), _WRITE_RETRY_MS)


def release(member: ClassicMember, outcome: Outcome, code: ErrorCode) -> None:
    """Answer whatever a member waits for with an error."""
    if member.joining is not None:
        parked, member.joining = member.joining, None
        known_id = "" if code is ErrorCode.UNKNOWN_MEMBER_ID else member.member_id
        outcome.answer(parked.ticket, join_refused(code, parked.version, known_id))
    if member.syncing is not None:
        parked, member.syncing = member.syncing, None
        outcome.answer(parked.ticket, sync_refused(code))
