"""What the controller has to set right in a picture, whatever led to it. Pure: writes to a draft.

Nothing here asks what happened: a dead leader, a topic half made or half deleted, a move that can
go on are all seen in the picture itself. So whoever becomes controller finishes what its
predecessor left, and news that were missed do no harm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from ottla.cluster.changes import delete_topic, in_sync_all, lead_all
from ottla.cluster.election import (
    Leadership,
    Situation,
    drop_dead,
    elect_evenly,
    first_leader,
    imbalance_percent,
    leave,
    prefer,
)
from ottla.cluster.image import NO_NODE_VERSION, ClusterImage, Draft, PartitionImage, TopicImage
from ottla.model.ids import BrokerId, TopicPartition

Elections = dict[TopicPartition, Leadership]


class Election(msgspec.Struct, frozen=True):
    """A change of leadership, for the log: what was, and what was decided."""

    partition: TopicPartition
    before: PartitionImage
    chosen: Leadership


def to_examine(examined: ClusterImage | None, image: ClusterImage) -> list[TopicImage]:
    """The topics in which something may have to be set right since a picture was examined."""
    if examined is None or examined.brokers.keys() != image.brokers.keys():
        return list(image.topics.values())
    if examined.topics is image.topics:
        return []
    return [topic for name, topic in image.topics.items() if examined.topics.get(name) != topic]


def finish_deletions(draft: Draft, topics: Iterable[TopicImage]) -> None:
    """Carry on with deletions that were begun and not finished."""
    for topic in topics:
        if topic.is_being_deleted and topic.name in draft.topics:
            delete_topic(draft, topic.name)


def settle_leaders(
    draft: Draft,
    topics: Iterable[TopicImage],
    situation: Situation,
    may_be_unclean: Callable[[TopicImage], bool],
) -> list[Election]:
    """Give every partition a leader that lives, as far as one can be had, and take the dead out
    of the sets in sync; what was decided."""
    alive = frozenset(situation.alive)
    orphans: dict[TopicPartition, PartitionImage] = {}
    decided: Elections = {}
    for topic in topics:
        if topic.is_being_deleted:
            continue
        for each in topic.partitions:
            key = TopicPartition(topic.name, each.index)
            if each.partition_epoch == NO_NODE_VERSION:
                _note(decided, key, first_leader(each.replicas, situation))
            elif each.leader not in alive:
                orphans[key] = each
            elif not alive.issuperset(each.isr):
                _note(decided, key, drop_dead(each, situation))
    if orphans:
        decided |= elect_evenly(
            orphans,
            situation,
            leaders_per_broker(draft.topics.values()),
            lambda key: may_be_unclean(draft.topics[key.topic]),
        )
    return carry_out(draft, decided)


def release_broker(draft: Draft, broker: BrokerId, situation: Situation) -> list[Election]:
    """Move what a broker leads to others, and take it out of the sets in sync."""
    decided: Elections = {}
    for topic in draft.topics.values():
        for each in topic.partitions:
            if broker == each.leader or broker in each.isr:
                _note(decided, TopicPartition(topic.name, each.index), leave(each, situation))
    return carry_out(draft, decided)


def prefer_where_unbalanced(draft: Draft, situation: Situation, percent_max: int) -> list[Election]:
    """Back to preferred leaders, for brokers that lead too few of those that prefer them.

    A partition on the move is left alone: its preferred leader is about to change.
    """
    every = [each for topic in draft.topics.values() for each in topic.partitions]
    shares = imbalance_percent(every)
    poor = {broker for broker, percent in shares.items() if percent > percent_max}
    if not poor:
        return []
    decided: Elections = {}
    for topic in draft.topics.values():
        for each in topic.partitions:
            if each.replicas[0] in poor and not (each.adding_replicas or each.removing_replicas):
                _note(decided, TopicPartition(topic.name, each.index), prefer(each, situation))
    return carry_out(draft, decided)


def carry_out(draft: Draft, decided: Elections) -> list[Election]:
    """Write what elections have decided, a topic at a time.

    Where the leader stays, only its set in sync is written and it goes on in its epoch: a new one
    would make all replicas stop and find each other again.
    """
    held: list[Election] = []
    led: dict[str, dict[int, Leadership]] = {}
    stay: dict[str, dict[int, tuple[BrokerId, ...]]] = {}
    for key, chosen in decided.items():
        before = draft.topics[key.topic].partitions[key.partition]
        held.append(Election(key, before, chosen))
        if before.has_leader and chosen.leader == before.leader:
            stay.setdefault(key.topic, {})[key.partition] = chosen.isr
        else:
            led.setdefault(key.topic, {})[key.partition] = chosen
    for name, of_topic in led.items():
        lead_all(draft, name, of_topic)
    for name, sets in stay.items():
        in_sync_all(draft, name, sets)
    return held


def leaders_per_broker(topics: Iterable[TopicImage]) -> Counter[BrokerId]:
    """How many partitions each broker leads."""
    return Counter(each.leader for topic in topics for each in topic.partitions)


def _note(decided: Elections, key: TopicPartition, chosen: Leadership | None) -> None:
    if chosen is not None:
        decided[key] = chosen
