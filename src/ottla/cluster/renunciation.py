"""What a broker gives up: before it comes back from a crash, and where it cannot write any more.
Pure: writes to a draft.

What it led it leads no more: it may lead again only in a new epoch, as its history may differ from
what it was in the old one. And where the machine went down with it, the end of its logs may be
gone, though it had vouched for it: then it takes itself out of the sets in sync, save where it is
the only member and nobody else has more. A process that was killed loses nothing it had vouched
for, and stays in sync: else a cluster that was killed as a whole would wait for its last broker.
The broker does it itself, before it registers and so before anybody can elect it; a crash and a
return that nobody saw do no harm.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from ottla.cluster.changes import lead, still_led, topic_of, write_in_sync, write_leadership
from ottla.cluster.election import Leadership
from ottla.cluster.image import NO_BROKER, Draft, PartitionImage
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.ids import BrokerId, LeaderEpoch, TopicPartition


def renounce(draft: Draft, broker: BrokerId, *, may_lack_records: bool) -> int:
    """Take a broker that crashed out of what it was trusted with; in how many partitions.

    Each operation expects the version that the state has in the picture, so that it needs not be
    the controller who writes it.
    """
    count = 0
    for topic in tuple(draft.topics.values()):
        partitions = list(topic.partitions)
        for each in topic.partitions:
            isr = _trusted(each, broker, may_lack_records=may_lack_records)
            after = _renounced(draft, topic.name, each, broker, isr)
            if after is not None:
                partitions[each.index] = after
                draft.may_end_here()
                count += 1
        if tuple(partitions) != topic.partitions:
            draft.put_topic(replace(topic, partitions=tuple(partitions)))
    return count


def renounce_lost(draft: Draft, broker: BrokerId, lost: Collection[TopicPartition]) -> int:
    """Take a broker out of partitions whose logs it has lost; in how many."""
    count = 0
    for name in lost:
        topic = draft.topics.get(name.topic)
        if topic is None or name.partition >= len(topic.partitions):
            continue
        before = topic.partitions[name.partition]
        isr = _trusted(before, broker, may_lack_records=True)
        after = _renounced(draft, name.topic, before, broker, isr)
        if after is not None:
            partitions = list(topic.partitions)
            partitions[name.partition] = after
            draft.put_topic(replace(topic, partitions=tuple(partitions)))
            draft.may_end_here()
            count += 1
    return count


def give_up(
    draft: Draft, name: TopicPartition, leader: BrokerId, epoch: LeaderEpoch
) -> PartitionImage:
    """Let a leader lead no more, nor be in sync, as it cannot write or nobody reaches it; the state
    as it will be.

    Nobody leads then until the controller has elected one of the others in sync. NotLeader where it
    leads no more already, RequestFailed where nobody else is in sync.
    """
    before = still_led(topic_of(draft, name.topic), name.partition, leader, epoch)
    others = tuple(member for member in before.isr if member != leader)
    if not others:
        raise RequestFailed(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, f"nobody else is in sync with {name}"
        )
    chosen = Leadership(NO_BROKER, others, before.recovery_state)
    return lead(draft, name.topic, name.partition, chosen)


def _trusted(
    partition: PartitionImage, broker: BrokerId, *, may_lack_records: bool
) -> tuple[BrokerId, ...]:
    """Who stays in sync; never nobody."""
    others = tuple(member for member in partition.isr if member != broker)
    return others if may_lack_records and others else partition.isr


def _renounced(
    draft: Draft,
    topic: str,
    before: PartitionImage,
    broker: BrokerId,
    isr: tuple[BrokerId, ...],
) -> PartitionImage | None:
    if before.leader == broker:
        chosen = Leadership(NO_BROKER, isr, before.recovery_state)
        return write_leadership(draft, topic, before, chosen)
    if isr != before.isr:
        return write_in_sync(draft, topic, before, isr)
    return None
