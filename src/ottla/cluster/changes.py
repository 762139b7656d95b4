"""What is wished of topics and their settings, turned into store operations and the next picture.

Each function checks the whole wish first and raises without having touched the draft; several
wishes may go into one draft and are then committed together. Pure: ids and random numbers come in.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Final

import msgspec
from msgspec.structs import replace

from ottla.cluster import layout
from ottla.cluster.election import Leadership
from ottla.cluster.image import (
    NO_BROKER,
    NO_NODE_VERSION,
    Draft,
    PartitionImage,
    TopicImage,
    metric_name,
)
from ottla.cluster.placement import Place, Turn, check_assignments, place
from ottla.cluster.store import Create, Delete, SetData
from ottla.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopic,
    NotLeader,
    OttlaError,
    PolicyViolation,
    TopicExists,
    UnknownTopic,
)
from ottla.model.ids import BrokerId, LeaderEpoch, TopicId
from ottla.settings import BrokerSettings, TopicSettings

NAME_CHARACTERS_MAX: Final = 249
PARTITIONS_MAX: Final = 10_000
"""The most partitions one wish may create."""
DELETED_AT_ONCE_MAX: Final = 1_000
"""A topic with more partitions is deleted in steps, noted first so that it is surely finished."""
DELETED_TOPICS_MAX: Final = 1_000
"""How many deleted topics are remembered, unless more are deleted at once. A broker that was away
for longer keeps the logs of the earlier ones, set aside."""
FORGOTTEN_AT_ONCE_MAX: Final = 2
"""How many deletions are forgotten with each new one: brokers need time to act on those made in
bulk."""
BY_DEFAULT: Final = -1
"""Stands for "as many as the broker's settings say"."""

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


class NewTopic(msgspec.Struct, frozen=True):
    """A topic somebody wants: by numbers, or by naming the brokers of each partition."""

    name: str
    partition_count: int = BY_DEFAULT
    replication_factor: int = BY_DEFAULT
    assignments: Mapping[int, Sequence[int]] = msgspec.field(default_factory=dict)
    configs: Mapping[str, str] = msgspec.field(default_factory=dict)


def objection_to_topic_name(name: str) -> OttlaError | None:
    """Why a topic cannot have this name, or None."""
    try:
        check_topic_name(name)
    except OttlaError as error:
        return error
    return None


def check_topic_name(name: str) -> None:
    """InvalidTopic unless a topic may have this name."""
    if not name:
        raise InvalidTopic("a topic's name cannot be empty")
    if name in (".", ".."):
        raise InvalidTopic("a topic's name cannot be '.' or '..'")
    if len(name) > NAME_CHARACTERS_MAX:
        raise InvalidTopic(f"a topic's name has at most {NAME_CHARACTERS_MAX} characters")
    if not _LEGAL.fullmatch(name):
        raise InvalidTopic(
            f"{name!r} is not a topic's name: use ASCII letters, digits, '.', '_' and '-'"
        )


def create_topic(
    draft: Draft, wish: NewTopic, *, topic_id: TopicId, turn: Turn, settings: BrokerSettings
) -> TopicImage:
    """Add a topic to the draft; the topic as it will be."""
    check_topic_name(wish.name)
    if wish.name in draft.topics:
        raise TopicExists(wish.name)
    twin = draft.metric_names.get(metric_name(wish.name))
    if twin is not None:
        raise InvalidTopic(f"topic {wish.name!r} collides with {twin!r}: '.' and '_' count as one")
    assignment = _assignment(draft, wish, turn, settings)
    TopicSettings.from_overrides(wish.configs, settings)
    partitions = tuple(
        _new_partition(draft, index, replicas) for index, replicas in enumerate(assignment)
    )
    config_version = 0 if wish.configs else NO_NODE_VERSION
    topic = TopicImage(
        wish.name, topic_id, partitions, dict(wish.configs), 0, config_version=config_version
    )
    write_topic(draft, topic)
    return topic


def write_topic(draft: Draft, topic: TopicImage) -> None:
    """Add a topic to the draft just as it is."""
    path = layout.topic_path(topic.name)
    draft.operations.append(Create(path, layout.encode(topic_node(topic))))
    draft.operations.append(Create(layout.partitions_path(topic.name)))
    if topic.configs:
        node = layout.ConfigNode(config=dict(topic.configs))
        draft.operations.append(Create(layout.topic_config_path(topic.name), layout.encode(node)))
    # From here on the topic exists. A partition without a state waits for its first leader.
    draft.may_end_here()
    for partition in topic.partitions:
        _write_new_partition(draft, topic.name, partition)
    draft.put_topic(topic)


def write_assignment(draft: Draft, topic: TopicImage, partitions: Sequence[PartitionImage]) -> None:
    """Let a topic have these partitions with their replicas; more of them than it had, perhaps."""
    changed = replace(topic, partitions=tuple(partitions), version=topic.version + 1)
    data = layout.encode(topic_node(changed))
    draft.operations.append(SetData(layout.topic_path(topic.name), data, topic.version))
    draft.may_end_here()
    for partition in partitions[len(topic.partitions) :]:
        _write_new_partition(draft, topic.name, partition)
    draft.put_topic(changed)


def delete_topic(draft: Draft, name: str) -> TopicImage:
    """Take a topic out of the draft; the topic as it was."""
    topic = topic_of(draft, name)
    is_noted = topic.is_being_deleted
    if len(topic.partitions) > DELETED_AT_ONCE_MAX and not is_noted:
        draft.operations.append(Create(layout.topic_deletion_path(name)))
        draft.may_end_here()
        is_noted = True
    for partition in topic.partitions:
        if partition.partition_epoch != NO_NODE_VERSION:
            draft.operations.append(Delete(layout.partition_state_path(name, partition.index)))
            draft.operations.append(Delete(layout.partition_path(name, partition.index)))
            if is_noted:
                draft.may_end_here()
    draft.operations.append(Delete(layout.partitions_path(name)))
    draft.operations.append(Delete(layout.topic_path(name), topic.version))
    if topic.config_version != NO_NODE_VERSION:
        draft.operations.append(Delete(layout.topic_config_path(name), topic.config_version))
    if is_noted:
        draft.operations.append(Delete(layout.topic_deletion_path(name)))
    _note_deleted(draft, topic)
    draft.may_end_here()
    draft.drop_topic(name)
    return topic


def _note_deleted(draft: Draft, topic: TopicImage) -> None:
    """Brokers delete logs of topics noted here and of no others, so that metadata which lost a
    topic in some other way does not take its records along."""
    if topic.id not in draft.deleted_topics:
        draft.operations.append(Create(layout.deleted_topic_path(topic.id)))
    draft.put_deleted_topic(topic.id)
    for forgotten in forget_oldest_deletions(draft):
        draft.operations.append(Delete(layout.deleted_topic_path(forgotten)))


def forget_oldest_deletions(draft: Draft) -> list[TopicId]:
    """Let the draft forget deletions it need not remember; the forgotten ones."""
    surplus = max(len(draft.deleted_topics) - DELETED_TOPICS_MAX, 0)
    forgotten = list(islice(draft.deleted_topics, min(surplus, FORGOTTEN_AT_ONCE_MAX)))
    for topic_id in forgotten:
        draft.forget_deleted_topic(topic_id)
    return forgotten


def add_partitions(
    draft: Draft,
    name: str,
    partition_count: int,
    *,
    assignments: Sequence[Sequence[int]] | None = None,
    turn: Turn,
) -> TopicImage:
    """Let a topic grow to `partition_count` partitions; the topic as it will be."""
    topic = topic_of(draft, name)
    current = len(topic.partitions)
    if partition_count <= current:
        raise InvalidPartitions(
            f"topic {name!r} has {current} partitions and cannot be given {partition_count}:"
            " the number can only grow"
        )
    _check_partition_count(partition_count - current)
    added = _added_assignment(draft, topic, partition_count, assignments, turn)
    fresh = tuple(
        _new_partition(draft, current + place, replicas) for place, replicas in enumerate(added)
    )
    write_assignment(draft, topic, (*topic.partitions, *fresh))
    return topic_of(draft, name)


def change_leader(
    draft: Draft, name: str, index: int, *, leader: BrokerId, isr: Sequence[BrokerId]
) -> PartitionImage:
    """Give a partition a leader and a set in sync; its leader epoch grows by one."""
    return lead(draft, name, index, Leadership(leader, tuple(isr)))


def lead(draft: Draft, name: str, index: int, chosen: Leadership) -> PartitionImage:
    """Let a partition be led as an election has decided; its leader epoch grows by one."""
    return lead_all(draft, name, {index: chosen}).partitions[index]


def lead_all(draft: Draft, name: str, chosen: Mapping[int, Leadership]) -> TopicImage:
    """Let many partitions of a topic be led as elections have decided; the topic as it will be."""
    topic = topic_of(draft, name)
    partitions = list(topic.partitions)
    for index, leadership in chosen.items():
        if not 0 <= index < len(partitions):
            raise UnknownTopic(name, index)
        partitions[index] = write_leadership(draft, name, partitions[index], leadership)
        draft.may_end_here()
    led = replace(topic, partitions=tuple(partitions))
    draft.put_topic(led)
    return led


def in_sync_all(
    draft: Draft,
    name: str,
    chosen: Mapping[int, tuple[BrokerId, ...]],
    *,
    has_recovered: bool = False,
) -> TopicImage:
    """Give many partitions of a topic other sets in sync; their leaders go on in their epochs.

    Where it is a leader who asks, what an unclean election may have cost is behind it: from then
    on its log is what is committed.
    """
    topic = topic_of(draft, name)
    partitions = list(topic.partitions)
    for index, isr in chosen.items():
        before = partitions[index]
        if has_recovered:
            before = replace(before, recovery_state=layout.RECOVERED)
        partitions[index] = write_in_sync(draft, name, before, isr)
        draft.may_end_here()
    changed = replace(topic, partitions=tuple(partitions))
    draft.put_topic(changed)
    return changed


def write_leadership(
    draft: Draft, name: str, before: PartitionImage, chosen: Leadership
) -> PartitionImage:
    """Ask the store for a partition's new state; the draft's picture is for the caller to change.

    Every such state has an epoch of its own, and with it a version that no leader can expect who
    has not heard of it.
    """
    after = replace(
        before,
        leader=chosen.leader,
        isr=chosen.isr,
        recovery_state=chosen.recovery_state,
        leader_epoch=LeaderEpoch(before.leader_epoch + 1),
        partition_epoch=before.partition_epoch + 1,
    )
    path = layout.partition_state_path(name, before.index)
    data = layout.encode(_state_node(after, draft.base.controller_epoch))
    if before.partition_epoch == NO_NODE_VERSION:
        draft.operations.append(Create(layout.partition_path(name, before.index)))
        draft.operations.append(Create(path, data))
    else:
        draft.operations.append(SetData(path, data, before.partition_epoch))
    return after


def change_in_sync(
    draft: Draft, name: str, index: int, *, led: PartitionImage, isr: Collection[BrokerId]
) -> PartitionImage:
    """Change the set in sync as the leader wishes, if it still leads as it did in `led`."""
    members = in_sync_as_wished(topic_of(draft, name), index, led, isr)
    return in_sync_all(draft, name, {index: members}).partitions[index]


def in_sync_as_wished(
    topic: TopicImage, index: int, led: PartitionImage, isr: Collection[BrokerId]
) -> tuple[BrokerId, ...]:
    """The set in sync that the leader of `led` wishes, where it may; changes nothing."""
    before = still_led(topic, index, led.leader, led.leader_epoch)
    members = tuple(broker for broker in before.replicas if broker in isr)
    if not members or before.leader not in members:
        raise InvalidRequest(f"the leader of partition {index} of {topic.name!r} must stay in sync")
    return members


def still_led(
    topic: TopicImage, index: int, leader: BrokerId, epoch: LeaderEpoch
) -> PartitionImage:
    """A partition's state, if this broker leads it in this epoch; else NotLeader."""
    if not 0 <= index < len(topic.partitions):
        raise UnknownTopic(topic.name, index)
    state = topic.partitions[index]
    if (state.leader, state.leader_epoch) != (leader, epoch):
        raise NotLeader(f"partition {index} of {topic.name!r} has another leader by now")
    return state


def write_in_sync(
    draft: Draft, name: str, before: PartitionImage, isr: tuple[BrokerId, ...]
) -> PartitionImage:
    """Ask the store for another set in sync in the same leader epoch; the draft's picture is for
    the caller to change."""
    after = replace(before, isr=isr, partition_epoch=before.partition_epoch + 1)
    data = layout.encode(_state_node(after, draft.base.controller_epoch))
    path = layout.partition_state_path(name, before.index)
    draft.operations.append(SetData(path, data, before.partition_epoch))
    return after


def topic_of(draft: Draft, name: str) -> TopicImage:
    """The topic as the draft has it; UnknownTopic where it has none."""
    topic = draft.topics.get(name)
    if topic is None:
        raise UnknownTopic(name)
    return topic


def _assignment(
    draft: Draft, wish: NewTopic, turn: Turn, settings: BrokerSettings
) -> list[tuple[BrokerId, ...]]:
    if wish.assignments:
        if (wish.partition_count, wish.replication_factor) != (BY_DEFAULT, BY_DEFAULT):
            raise InvalidRequest("give either the brokers of each partition or numbers, not both")
        _check_partition_count(len(wish.assignments))
        return check_assignments(wish.assignments, draft.base.brokers)
    count = wish.partition_count
    if count == BY_DEFAULT:
        count = settings.num_partitions
    factor = wish.replication_factor
    if factor == BY_DEFAULT:
        factor = settings.default_replication_factor
    if count < 1:
        raise InvalidPartitions(f"a topic cannot have {count} partitions")
    if factor < 1:
        raise InvalidReplicationFactor(f"a topic cannot have {factor} replicas")
    _check_partition_count(count)
    return place(_places(draft), range(count), factor, turn)


def _added_assignment(
    draft: Draft,
    topic: TopicImage,
    partition_count: int,
    assignments: Sequence[Sequence[int]] | None,
    turn: Turn,
) -> list[tuple[BrokerId, ...]]:
    first = len(topic.partitions)
    factor = len(topic.partitions[0].replicas)
    if assignments is None:
        return place(_places(draft), range(first, partition_count), factor, turn)
    if len(assignments) != partition_count - first:
        raise InvalidReplicaAssignment(
            f"{partition_count - first} partitions are added, {len(assignments)} are assigned"
        )
    numbered = dict(enumerate(assignments, start=first))
    checked = check_assignments(numbered, draft.base.brokers, first)
    if len(checked[0]) != factor:
        raise InvalidReplicaAssignment(f"the topic has {factor} replicas of each partition")
    return checked


def _check_partition_count(count: int) -> None:
    if count > PARTITIONS_MAX:
        raise PolicyViolation(f"{count} partitions at once are too many; {PARTITIONS_MAX} may be")


def _places(draft: Draft) -> list[Place]:
    return [Place(broker.id, broker.rack) for broker in draft.base.brokers.values()]


def _new_partition(draft: Draft, index: int, replicas: tuple[BrokerId, ...]) -> PartitionImage:
    alive = tuple(broker for broker in replicas if broker in draft.base.brokers)
    leader = alive[0] if alive else NO_BROKER
    return PartitionImage(index, leader, LeaderEpoch(0), alive, replicas, partition_epoch=0)


def _write_new_partition(draft: Draft, topic: str, partition: PartitionImage) -> None:
    state = layout.encode(_state_node(partition, draft.base.controller_epoch))
    draft.operations.append(Create(layout.partition_path(topic, partition.index)))
    draft.operations.append(Create(layout.partition_state_path(topic, partition.index), state))
    draft.may_end_here()


def topic_node(topic: TopicImage) -> layout.TopicNode:
    """A topic as it is written."""
    parts = topic.partitions
    return layout.TopicNode(
        topic_id=layout.topic_id_text(topic.id),
        partitions={part.index: part.replicas for part in parts},
        adding_replicas={p.index: p.adding_replicas for p in parts if p.adding_replicas},
        removing_replicas={p.index: p.removing_replicas for p in parts if p.removing_replicas},
    )


def _state_node(partition: PartitionImage, controller_epoch: int) -> layout.PartitionStateNode:
    node = layout.PartitionStateNode(
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        controller_epoch=controller_epoch,
        isr=partition.isr,
    )
    if partition.recovery_state == layout.RECOVERED:
        return node
    return layout.PartitionStateNode(
        leader=node.leader,
        leader_epoch=node.leader_epoch,
        controller_epoch=node.controller_epoch,
        isr=node.isr,
        leader_recovery_state=partition.recovery_state,
    )
