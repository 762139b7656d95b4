"""The group coordinator of one partition of __consumer_offsets: routes each event to its place.

The runtime calls one method at a time. Where a decision has records it appends them as one batch
and calls `replay` for each before it calls anything else; where the append fails it calls
`append_failed` instead, and sets none of the failed decision's timers. Answers that carry what was
read (`offset_fetch` and the like) show what was replayed, so they are true for others once
everything appended before them is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ottla.coordination.decision import Caller, Decision, NewRecord, Ticket, TimerKey
from ottla.coordination.group import timer_keys
from ottla.coordination.group.classic_group import ClassicGroup, ClassicState
from ottla.coordination.group.classic_guests import ClassicGuests
from ottla.coordination.group.classic_protocol import ClassicProtocol
from ottla.coordination.group.classic_rebalance import release
from ottla.coordination.group.consumer_departure import ConsumerDeparture
from ottla.coordination.group.consumer_group import ConsumerGroup
from ottla.coordination.group.consumer_protocol import ConsumerProtocol
from ottla.coordination.group.consumer_records import group_gone
from ottla.coordination.group.failures import code_after_failed_write, failed
from ottla.coordination.group.groups import Group, Groups
from ottla.coordination.group.listing import describe_classic, describe_consumer, list_groups
from ottla.coordination.group.offset_commits import EXPIRED_PER_DECISION_MAX, OffsetCommits
from ottla.coordination.group.offset_reads import FetchStyle, OffsetReads
from ottla.coordination.group.offsets import Offsets
from ottla.coordination.group.outcome import Call, Outcome
from ottla.coordination.group.records import (
    OFFSET_VALUE_VERSION_WITH_TOPIC_ID,
    group_record,
    groups_of,
    new_record,
)
from ottla.coordination.group.replay import Replay
from ottla.coordination.group.stage import Stage
from ottla.coordination.group.subscriptions import refresh
from ottla.coordination.group.target import Targets
from ottla.coordination.group.topics import Topics
from ottla.errors import ErrorCode
from ottla.model.ids import NO_PRODUCER_ID
from ottla.protocol.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from ottla.protocol.messages.describe_groups import DescribedGroup
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.leave_group import LeaveGroupRequest
from ottla.protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from ottla.protocol.messages.offset_commit import OffsetCommitRequest
from ottla.protocol.messages.offset_delete import OffsetDeleteRequest
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest
from ottla.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from ottla.settings.coordination import GroupSettings
from ottla.settings.group import OwnGroupSettings


class GroupShard:
    """The groups whose names fall on one partition."""

    __slots__ = (
        "_classic",
        "_commits",
        "_consumer",
        "_default_assignor",
        "_departure",
        "_groups",
        "_offsets",
        "_reads",
        "_replay",
        "_topics",
    )

    def __init__(
        self,
        settings: GroupSettings,
        topics: Topics,
        new_member_id: Callable[[str], str],
        *,
        own_settings: Callable[[str], OwnGroupSettings] | None = None,
        offset_version_max: int = OFFSET_VALUE_VERSION_WITH_TOPIC_ID,
    ) -> None:
        self._groups = Groups()
        self._offsets = Offsets()
        self._replay = Replay(self._groups, self._offsets)
        self._commits = OffsetCommits(
            settings, topics, self._groups, self._offsets, offset_version_max
        )
        self._reads = OffsetReads(topics, self._groups, self._offsets)
        self._topics = topics
        self._default_assignor = settings.group_consumer_assignors[0]
        targets = Targets(topics, self._default_assignor)
        self._departure = ConsumerDeparture(settings, topics)
        self._consumer = ConsumerProtocol(
            settings,
            self._groups,
            targets,
            self._departure,
            new_member_id,
            own_settings=own_settings,
        )
        guests = ClassicGuests(settings, targets, self._departure, new_member_id)
        self._classic = ClassicProtocol(settings, self._groups, guests, new_member_id)

    # --- the log ----------------------------------------------------------------------------------

    def replay(
        self,
        key: bytes,
        value: bytes | None,
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = -1,  # noqa: ARG002  (a transaction's offsets are known by producer)
    ) -> None:
        """Apply one record of the log: while loading, and after each append."""
        self._replay.record(key, value, producer_id)

    def replay_new(self, record: NewRecord, *, producer_id: int = NO_PRODUCER_ID) -> None:
        """Apply a record that was just written."""
        if record.said is not None:
            self._replay.said(record.said, producer_id)
        else:
            self._replay.record(record.key, record.value, producer_id)

    def replay_marker(self, producer_id: int, is_commit: bool) -> None:
        """Apply the end of a producer's transaction."""
        self._offsets.end_transaction(producer_id, is_commit=is_commit)

    def on_loaded(self, now_ms: int) -> Decision:
        """The whole log was replayed: members have one session timeout to be heard of."""
        outcome = Outcome(now_ms)
        for group in self._groups:
            if isinstance(group, ConsumerGroup):
                self._consumer.expect_heartbeats(group, outcome)
                refresh(Stage(group, outcome), self._topics)
            else:
                self._classic.loaded(group, outcome)
        return outcome.decision()

    def append_failed(self, decision: Decision, code: ErrorCode) -> Decision:
        """The records of a decision were not written: answer with errors, take back what waits."""
        outcome = Outcome(0)
        for reply in decision.replies:
            told = code_after_failed_write(code, reply.response)
            outcome.answer(reply.ticket, failed(reply.response, told))
        for group_id in groups_of(decision.records):
            group = self._groups.get(group_id)
            if isinstance(group, ConsumerGroup):
                self._consumer.expect_heartbeats(group, outcome)
            elif group is not None:
                self._classic.rebalance.write_failed(group, outcome)
        return outcome.decision()

    def resign(self) -> Decision:
        """Another broker coordinates these groups from now on: whoever waits is told so."""
        outcome = Outcome(0)
        for group in self._groups:
            if isinstance(group, ClassicGroup):
                for member in group.members.values():
                    release(member, outcome, ErrorCode.NOT_COORDINATOR)
        return outcome.decision()

    # --- members ----------------------------------------------------------------------------------

    def join_group(
        self, request: JoinGroupRequest, caller: Caller, ticket: Ticket, now_ms: int
    ) -> Decision:
        call = Call(caller, ticket, Outcome(now_ms))
        self._classic.join(request, call)
        return call.outcome.decision()

    def sync_group(
        self, request: SyncGroupRequest, caller: Caller, ticket: Ticket, now_ms: int
    ) -> Decision:
        call = Call(caller, ticket, Outcome(now_ms))
        self._classic.sync(request, call)
        return call.outcome.decision()

    def heartbeat(
        self, request: HeartbeatRequest, caller: Caller, ticket: Ticket, now_ms: int
    ) -> Decision:
        call = Call(caller, ticket, Outcome(now_ms))
        self._classic.heartbeat(request, call)
        return call.outcome.decision()

    def leave_group(
        self, request: LeaveGroupRequest, caller: Caller, ticket: Ticket, now_ms: int
    ) -> Decision:
        call = Call(caller, ticket, Outcome(now_ms))
        self._classic.leave(request, call)
        return call.outcome.decision()

    def consumer_group_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, ticket: Ticket, now_ms: int
    ) -> Decision:
        call = Call(caller, ticket, Outcome(now_ms))
        self._consumer.heartbeat(request, call)
        return call.outcome.decision()

    def forget(self, ticket: Ticket, now_ms: int) -> Decision:
        """The client of a parked request went away; its answer is not wanted any more."""
        outcome = Outcome(now_ms)
        for group in self._groups:
            if isinstance(group, ClassicGroup) and (
                self._classic.members.forget(group, ticket, outcome)
            ):
                break
        return outcome.decision()

    def timer_fired(self, key: TimerKey, now_ms: int) -> Decision:
        """A timer's time has come. One that is not expected any more changes nothing."""
        group = self._groups.get(key[1])
        outcome = Outcome(now_ms)
        if isinstance(group, ClassicGroup):
            self._classic_timer_fired(group, key, outcome)
        elif isinstance(group, ConsumerGroup) and self._consumer.is_overdue(group, key):
            self._departure.remove(group, [key[2]], outcome)
        return outcome.decision()

    def _classic_timer_fired(self, group: ClassicGroup, key: TimerKey, outcome: Outcome) -> None:
        match key:
            case (timer_keys.SESSION, _, member_id):
                self._classic.members.session_expired(group, member_id, outcome)
            case (timer_keys.JOIN, _):
                self._classic.rebalance.join_time_is_up(group, outcome)
            case (timer_keys.SYNC, _):
                self._classic.rebalance.sync_time_is_up(group, outcome)
            case (timer_keys.REBALANCE, _) if group.needs_rebalance:
                self._classic.rebalance.prepare(group, outcome)
            case _:
                pass  # a timer of the consumer group it was before

    # --- offsets ----------------------------------------------------------------------------------

    def offset_commit(
        self, request: OffsetCommitRequest, caller: Caller, ticket: Ticket, now_ms: int
    ) -> Decision:
        call = Call(caller, ticket, Outcome(now_ms))
        group = self._commits.commit(request, call)
        if isinstance(group, ClassicGroup) and (
            group.state in (ClassicState.STABLE, ClassicState.PREPARING)
        ):
            self._classic.members.keep_alive(group, request.member_id, call.outcome)
        return call.outcome.decision()

    def txn_offset_commit(
        self, request: TxnOffsetCommitRequest, caller: Caller, ticket: Ticket, now_ms: int
    ) -> Decision:
        """The records must be written as a batch of the request's transaction."""
        call = Call(caller, ticket, Outcome(now_ms))
        self._commits.commit_in_transaction(request, call)
        return call.outcome.decision()

    def offset_delete(
        self, request: OffsetDeleteRequest, caller: Caller, ticket: Ticket, now_ms: int
    ) -> Decision:
        call = Call(caller, ticket, Outcome(now_ms))
        self._commits.delete(request, call)
        return call.outcome.decision()

    def offset_fetch(self, request: OffsetFetchRequest, caller: Caller) -> OffsetFetchResponse:
        """Answer a whole request whose groups are all of this shard."""
        return self._reads.fetch(request, caller.version)

    def fetch_offsets(
        self, group: OffsetFetchRequestGroup, *, version: int, require_stable: bool
    ) -> OffsetFetchResponseGroup:
        """Answer the part of a request that concerns one group."""
        return self._reads.fetch_group(group, FetchStyle(version, require_stable))

    def expire_offsets(self, now_ms: int) -> Decision:
        """Remove old offsets and empty groups, some at a time; call again while there are any."""
        outcome = Outcome(now_ms)
        for group in self._groups:
            if len(outcome.records) >= EXPIRED_PER_DECISION_MAX:
                break
            if isinstance(group, ConsumerGroup):
                group.note_emptiness(now_ms)
            if self._commits.expire(group, outcome) and group.is_unused:
                _write_tombstones(group, outcome)
        return outcome.decision()

    def topics_changed(self, now_ms: int) -> Decision:
        """Topics came, went or grew: the groups that read them begin an epoch."""
        outcome = Outcome(now_ms)
        for group in self._groups:
            if isinstance(group, ConsumerGroup):
                refresh(Stage(group, outcome), self._topics)
        return outcome.decision()

    def topics_deleted(self, names: Iterable[str], now_ms: int) -> Decision:
        """Remove the offsets of topics that are gone."""
        outcome = Outcome(now_ms)
        self._commits.delete_topics(names, outcome)
        return outcome.decision()

    # --- administration ---------------------------------------------------------------------------

    def list_groups(self, request: ListGroupsRequest) -> list[ListedGroup]:
        return list_groups(self._groups, request)

    def describe_group(self, group_id: str, version: int) -> DescribedGroup:
        """One group for DescribeGroups, which knows classic groups."""
        return describe_classic(self._groups.get(group_id), group_id, version)

    def describe_consumer_group(self, group_id: str) -> DescribedConsumerGroup:
        """One group for ConsumerGroupDescribe, which knows consumer groups."""
        group = self._groups.get(group_id)
        return describe_consumer(group, group_id, self._topics, self._default_assignor)

    def delete_groups(
        self, request: DeleteGroupsRequest, caller: Caller, ticket: Ticket, now_ms: int
    ) -> Decision:
        """Delete groups of this shard that have no members, with their offsets."""
        call = Call(caller, ticket, Outcome(now_ms))
        results = [self._delete(each, call.outcome) for each in dict.fromkeys(request.groups_names)]
        call.answer(DeleteGroupsResponse(results=results))
        return call.outcome.decision()

    def _delete(self, group_id: str, outcome: Outcome) -> DeletableGroupResult:
        group = self._groups.get(group_id)
        result = DeletableGroupResult(group_id=group_id)
        if group is None:
            result.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        elif not group.is_empty:
            result.error_code = ErrorCode.NON_EMPTY_GROUP
        else:
            self._commits.delete_all_of(group_id, outcome)
            _write_tombstones(group, outcome)
        return result


def _write_tombstones(group: Group, outcome: Outcome) -> None:
    if isinstance(group, ConsumerGroup):
        for change in group_gone(group):
            outcome.write(new_record(*change))
    else:
        outcome.write(group_record(group.group_id, None))
