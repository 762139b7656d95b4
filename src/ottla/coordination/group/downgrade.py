"""Turns a consumer group into a classic one when only classic members are left in it.

Committed offsets are not touched. The record of the classic group names no leader: a group that is
found so has to rebalance, for nobody reads what the last member of the new protocol had.
"""

from __future__ import annotations

from ottla.coordination.group import timer_keys
from ottla.coordination.group.classic_answers import generation_record
from ottla.coordination.group.classic_group import CONSUMER_PROTOCOL_TYPE, ClassicGroup
from ottla.coordination.group.classic_member import ClassicMember
from ottla.coordination.group.consumer_group import ConsumerGroup
from ottla.coordination.group.consumer_member import ConsumerMember
from ottla.coordination.group.consumer_records import group_gone
from ottla.coordination.group.embedded_assignment import assignment_bytes
from ottla.coordination.group.records import new_record
from ottla.coordination.group.stage import Stage
from ottla.coordination.group.topics import Topics
from ottla.settings.coordination import GroupSettings

_ALLOWING = ("downgrade", "bidirectional")


def can_downgrade(group: ConsumerGroup, leaving: frozenset[str], settings: GroupSettings) -> bool:
    """Whether, without those that leave, the group would be better off as a classic one."""
    staying = [each for each in group.members.values() if each.member_id not in leaving]
    return (
        bool(staying)
        and all(each.is_classic for each in staying)
        and settings.group_consumer_migration_policy in _ALLOWING
        and len(staying) <= settings.group_max_size
    )


def downgrade(stage: Stage, leaving: frozenset[str], topics: Topics) -> None:
    """Write the consumer group off and a classic group of the members that stay down."""
    group, outcome = stage.group, stage.outcome
    staying = [each for each in group.members.values() if each.member_id not in leaving]
    classic = ClassicGroup(group.group_id)
    for each in staying:
        classic.add(_classic_member(each), CONSUMER_PROTOCOL_TYPE)
    classic.generation = group.epoch
    classic.protocol = classic.select_protocol()
    classic.leader = None
    for change in group_gone(group):
        outcome.write(new_record(*change))
    assignments = {each.member_id: assignment_bytes(each, topics) for each in staying}
    outcome.write(generation_record(classic, outcome.now_ms, assignments))
    for member in classic.members.values():
        group_id, member_id = group.group_id, member.member_id
        for key in (timer_keys.revocation, timer_keys.rejoin, timer_keys.resync):
            outcome.stop_timer(key(group_id, member_id))
        outcome.start_timer(timer_keys.session(group_id, member_id), member.session_timeout_ms)
    outcome.start_timer(timer_keys.rebalance(group.group_id), 0)


def _classic_member(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=member.classic.protocols,
    )
