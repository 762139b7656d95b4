"""What of a shard must be the same after its log is replayed, as plain values to compare."""

from __future__ import annotations

from ottla.coordination.group.classic_group import ClassicGroup, ClassicState
from ottla.coordination.group.consumer_group import ConsumerGroup
from ottla.coordination.group.shard import GroupShard

KEPT_STATES = (ClassicState.STABLE, ClassicState.EMPTY)


def picture_of_groups(shard: GroupShard) -> dict[str, object]:
    """Each group's kept state; None for a classic group that is between two of them."""
    pictures: dict[str, object] = {}
    for group in shard._groups:
        if isinstance(group, ConsumerGroup):
            pictures[group.group_id] = _consumer(group)
        elif group.state in KEPT_STATES and group.generation:
            pictures[group.group_id] = _classic(group)
        else:
            pictures[group.group_id] = None
    return pictures


def _classic(group: ClassicGroup) -> object:
    return (
        "classic",
        group.generation,
        group.protocol_type,
        group.protocol,
        group.leader,
        {
            each.member_id: (
                each.instance_id,
                each.session_timeout_ms,
                each.rebalance_timeout_ms,
                each.metadata_in(group.protocol),
                each.assignment,
            )
            for each in group.members.values()
        },
        group.static_members,
        group.subscribed,
    )


def _consumer(group: ConsumerGroup) -> object:
    return (
        "consumer",
        group.epoch,
        group.metadata_hash,
        group.members,
        group.static_members,
        group.target,
        group.target_epoch,
        group.owners,
        group.patterns,
    )


def picture_of_offsets(shard: GroupShard) -> object:
    """Every committed offset, and those that wait for their transaction."""
    offsets = shard._offsets
    committed = {
        (group_id, topic, partition): committed.offset
        for group_id, by_topic in offsets._by_group.items()
        for topic, partitions in by_topic.items()
        for partition, committed in partitions.items()
    }
    pending = {
        producer_id: {key: each.offset for key, each in held.items()}
        for producer_id, held in offsets._pending.items()
        if held
    }
    return committed, pending


def check_replay(live: GroupShard, replayed: GroupShard) -> None:
    """What the log says is what the coordinator believes."""
    assert picture_of_offsets(live) == picture_of_offsets(replayed)
    there = picture_of_groups(replayed)
    for group_id, picture in picture_of_groups(live).items():
        if picture is not None:
            assert there.get(group_id) == picture
