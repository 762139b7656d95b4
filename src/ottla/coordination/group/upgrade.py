"""Turns a classic group into a consumer group when a member of the new protocol joins it.

The classic members stay in the group, with the assignment they were last given, and take part in
the new protocol by the requests of the old one. Committed offsets are not touched.
"""

from __future__ import annotations

from ottla.coordination.group import timer_keys
from ottla.coordination.group.assignors.spec import PartitionKey
from ottla.coordination.group.classic_group import ClassicGroup, ClassicState
from ottla.coordination.group.classic_member import ClassicMember
from ottla.coordination.group.classic_rebalance import release
from ottla.coordination.group.consumer_group import ConsumerGroup
from ottla.coordination.group.consumer_member import ClassicSide, ConsumerMember
from ottla.coordination.group.consumer_records import (
    assignment_change,
    epoch_change,
    member_change,
    target_change,
    target_epoch_change,
)
from ottla.coordination.group.embedded_protocol import read_assignment, read_subscription
from ottla.coordination.group.outcome import Outcome
from ottla.coordination.group.records import group_record
from ottla.coordination.group.stage import Stage
from ottla.coordination.group.subscriptions import begin_epoch, metadata_hash
from ottla.coordination.group.topics import Topics
from ottla.errors import ErrorCode, ProtocolError, RequestFailed
from ottla.settings.coordination import GroupSettings

_ALLOWING = ("upgrade", "bidirectional")


def upgrade(
    classic: ClassicGroup, topics: Topics, outcome: Outcome, settings: GroupSettings
) -> Stage:
    """The consumer group that a classic group becomes; GROUP_ID_NOT_FOUND where it cannot.

    An empty group can always become one. Its generation goes on as the epoch of the new group.
    """
    if classic.members:
        _check(classic, settings)
    members = _members(classic, topics)
    for member in classic.members.values():
        release(member, outcome, ErrorCode.REBALANCE_IN_PROGRESS)
    outcome.stop_timer(timer_keys.join(classic.group_id))
    outcome.stop_timer(timer_keys.sync(classic.group_id))
    outcome.write(group_record(classic.group_id, None))
    stage = Stage(ConsumerGroup(classic.group_id), outcome, is_new=True)
    group_id, epoch = classic.group_id, classic.generation
    for each in members:
        stage.write(member_change(group_id, each))
    stage.write(epoch_change(group_id, epoch, metadata_hash(stage.group, topics)))
    for each in members:
        stage.write(target_change(group_id, each.member_id, frozenset(each.assigned)))
    stage.write(target_epoch_change(group_id, epoch, outcome.now_ms))
    for each in members:
        stage.write(assignment_change(group_id, each))
        assert each.classic is not None
        session = timer_keys.session(group_id, each.member_id)
        outcome.start_timer(session, each.classic.session_timeout_ms)
    if members and classic.state is not ClassicState.STABLE:
        begin_epoch(stage, topics)  # the rebalance that was under way still has to happen
    return stage


def _check(classic: ClassicGroup, settings: GroupSettings) -> None:
    if settings.group_consumer_migration_policy not in _ALLOWING:
        reason = "moving groups to the consumer protocol is switched off"
    elif not classic.uses_consumer_protocol:
        reason = "its members are not consumers"
    elif len(classic.members) >= settings.group_consumer_max_size:
        reason = "it has too many members"
    else:
        return
    raise RequestFailed(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"The group {classic.group_id!r} is a classic group and cannot become a consumer group: "
        f"{reason}.",
    )


def _members(classic: ClassicGroup, topics: Topics) -> list[ConsumerMember]:
    taken: set[PartitionKey] = set()
    members = []
    try:
        for each in classic.members.values():
            member = _member(each, classic, topics, taken)
            taken.update(member.assigned)
            members.append(member)
    except ProtocolError as error:
        raise RequestFailed(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"The group {classic.group_id!r} cannot become a consumer group: "
            f"what a member says cannot be read ({error.message}).",
        ) from None
    return members


def _member(
    classic: ClassicMember, group: ClassicGroup, topics: Topics, taken: set[PartitionKey]
) -> ConsumerMember:
    said = classic.metadata_in(group.protocol) or classic.protocols[0][1]
    subscription = read_subscription(said)
    assigned: dict[PartitionKey, int] = {}
    for topic in read_assignment(classic.assignment).assigned_partitions:
        topic_id = topics.id_of(topic.topic)
        count = topics.partition_count(topic.topic) or 0
        for index in topic.partitions:
            # A leader may have assigned what does not exist, or one partition to two members.
            if topic_id is not None and 0 <= index < count and (topic_id, index) not in taken:
                assigned[topic_id, index] = group.generation
    return ConsumerMember(
        member_id=classic.member_id,
        instance_id=classic.instance_id,
        rack_id=subscription.rack_id,
        client_id=classic.client_id,
        client_host=classic.client_host,
        rebalance_timeout_ms=classic.rebalance_timeout_ms,
        topics=tuple(sorted(set(subscription.topics))),
        classic=ClassicSide(classic.session_timeout_ms, classic.protocols),
        epoch=group.generation,
        previous_epoch=group.generation,
        assigned=assigned,
    )
