"""Computes what each member of a consumer group should have, and brings a member there.

The same steps for every member, whichever protocol it speaks: note what it told, begin an epoch if
the group reads other topics now, compute the target of a new epoch, take the member's next step.
"""

from __future__ import annotations

from collections import Counter

from ottla.coordination.group.assignors import ASSIGNORS
from ottla.coordination.group.assignors.spec import GroupSpec, MemberSpec, Partitions
from ottla.coordination.group.consumer_group import ConsumerGroup
from ottla.coordination.group.consumer_member import ConsumerMember
from ottla.coordination.group.consumer_records import (
    assignment_change,
    member_change,
    target_change,
    target_epoch_change,
)
from ottla.coordination.group.reconciliation import Target, reconcile
from ottla.coordination.group.stage import Stage
from ottla.coordination.group.subscriptions import begin_epoch, tidy_patterns
from ottla.coordination.group.topics import Topics


class Targets:
    """Computes targets from the topics as they are, and takes members towards them."""

    __slots__ = ("_default_assignor", "topics")

    def __init__(self, topics: Topics, default_assignor: str) -> None:
        self.topics = topics
        self._default_assignor = default_assignor

    def advance(
        self, stage: Stage, told: ConsumerMember, owned: Partitions | None
    ) -> ConsumerMember:
        """Take in what a member tells of itself and take its next step; returns it after that.

        `told` is the member as it was, with what the request says put in; `owned` is what it says
        it has, None where it says nothing.
        """
        before = stage.group.members.get(told.member_id)
        if told != before:
            stage.write(member_change(stage.group_id, told))
        if before is None or (told.topics, told.pattern) != (before.topics, before.pattern):
            tidy_patterns(stage, self.topics)
            begin_epoch(stage, self.topics)
        if stage.group.epoch > stage.group.target_epoch:
            self.retarget(stage)
        group = stage.group
        member = group.members[told.member_id]
        target = Target(group.target_epoch, group.target.get(member.member_id, frozenset()))
        after = reconcile(
            member, target, owned, lambda each: group.is_free_for(each, member.member_id)
        )
        if after != member:
            stage.write(assignment_change(stage.group_id, after))
        return after

    def retarget(self, stage: Stage) -> None:
        """Compute the target of the group's present epoch and write down whom it changes."""
        group = stage.group
        name = preferred_assignor(group, self._default_assignor)
        targets = ASSIGNORS[name](_spec(group, self.topics))
        for member_id, partitions in targets.items():
            if group.target.get(member_id) != partitions:
                stage.write(target_change(group.group_id, member_id, partitions))
        stage.write(target_epoch_change(group.group_id, group.epoch, stage.outcome.now_ms))


def preferred_assignor(group: ConsumerGroup, default: str) -> str:
    """The assignor most members ask for; the default where none of them does."""
    votes = Counter(each.assignor for each in group.members.values() if each.assignor in ASSIGNORS)
    if not votes:
        return default
    return max(sorted(map(str, votes)), key=votes.__getitem__)


def _spec(group: ConsumerGroup, topics: Topics) -> GroupSpec:
    counts: dict[bytes, int] = {}
    ids: dict[str, bytes] = {}
    for name in group.subscribed_topics():
        count, topic_id = topics.partition_count(name), topics.id_of(name)
        if count is not None and topic_id is not None:
            counts[topic_id] = count
            ids[name] = topic_id
    # Most members of a group subscribe alike, so each subscription is looked up once.
    read: dict[tuple[tuple[str, ...], str | None], frozenset[bytes]] = {}
    members: dict[str, MemberSpec] = {}
    for member in group.members.values():
        subscription = (member.topics, member.pattern)
        topic_ids = read.get(subscription)
        if topic_ids is None:
            topic_ids = frozenset(ids[each] for each in group.topics_of(member) if each in ids)
            read[subscription] = topic_ids
        assigned = group.target.get(member.member_id, frozenset())
        members[member.member_id] = MemberSpec(topic_ids, assigned, member.instance_id)
    return GroupSpec(members, counts)
