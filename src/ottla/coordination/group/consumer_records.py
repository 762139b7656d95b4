"""The records of a consumer group: what each kind says, and what it changes when it is replayed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from ottla.coordination.group.assignors.spec import PartitionKey, Partitions, partitions_by_topic
from ottla.coordination.group.consumer_group import ConsumerGroup, ResolvedPattern
from ottla.coordination.group.consumer_member import ClassicSide, ConsumerMember, MemberState
from ottla.protocol.message import Message
from ottla.protocol.messages.group_records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)
from ottla.protocol.messages.group_records import ClassicProtocol as StoredProtocol

Change = tuple[Message, Message | None]
"""A record before it is encoded: key and value, or no value for a tombstone."""


def epoch_change(group_id: str, epoch: int, metadata_hash: int) -> Change:
    """The group begins an epoch."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return ConsumerGroupMetadataKey(group_id=group_id), value


def member_change(group_id: str, member: ConsumerMember) -> Change:
    """A member is new, or tells something else of itself."""
    classic = None
    if member.classic is not None:
        classic = ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                StoredProtocol(name=name, metadata=metadata)
                for name, metadata in member.classic.protocols
            ],
        )
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.pattern,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=classic,
    )
    return ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value


def target_change(group_id: str, member_id: str, partitions: Partitions) -> Change:
    """A member should have these partitions."""
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TopicPartition(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in partitions_by_topic(partitions).items()
        ]
    )
    return ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value


def target_epoch_change(group_id: str, epoch: int, now_ms: int) -> Change:
    """The target of an epoch is complete."""
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=now_ms
    )
    return ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value


def assignment_change(group_id: str, member: ConsumerMember) -> Change:
    """A member has taken a step towards its target."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_with_epochs(member.assigned),
        partitions_pending_revocation=_with_epochs(member.revoking),
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return key, value


def pattern_change(group_id: str, pattern: str, resolved: ResolvedPattern) -> Change:
    """A pattern matches these topics."""
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), timestamp=resolved.resolved_ms
    )
    return pattern_gone(group_id, pattern)[0], value


def pattern_gone(group_id: str, pattern: str) -> Change:
    """Nobody uses a pattern any more."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern)
    return key, None


def member_gone(group_id: str, member_id: str) -> Iterator[Change]:
    """A member is not in the group any more."""
    yield ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None
    yield ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None
    yield ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None


def group_gone(group: ConsumerGroup) -> Iterator[Change]:
    """The group is no more."""
    group_id = group.group_id
    for member_id in dict.fromkeys((*group.members, *group.target)):
        yield from member_gone(group_id, member_id)
    for pattern in group.patterns:
        yield pattern_gone(group_id, pattern)
    yield ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None
    if group.has_partition_metadata:
        yield ConsumerGroupPartitionMetadataKey(group_id=group_id), None
    yield ConsumerGroupMetadataKey(group_id=group_id), None


def _with_epochs(partitions: Mapping[PartitionKey, int]) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id,
            partitions=indexes,
            assignment_epochs=[partitions[topic_id, each] for each in indexes],
        )
        for topic_id, indexes in partitions_by_topic(partitions).items()
    ]


# --- replay --------------------------------------------------------------------------------------


def apply_change(group: ConsumerGroup, change: Change) -> None:
    """Make true what a record says. The end of the whole group is the caller's to apply."""
    match change:
        case ConsumerGroupMemberMetadataKey() as key, value:
            _apply_member(group, key.member_id, value)
        case ConsumerGroupCurrentMemberAssignmentKey() as key, value:
            _apply_assignment(group, key.member_id, value)
        case ConsumerGroupTargetAssignmentMemberKey() as key, None:
            group.target.pop(key.member_id, None)
        case (
            ConsumerGroupTargetAssignmentMemberKey() as key,
            ConsumerGroupTargetAssignmentMemberValue() as target,
        ):
            group.target[key.member_id] = frozenset(
                (topic.topic_id, index)
                for topic in target.topic_partitions
                for index in topic.partitions
            )
        case ConsumerGroupTargetAssignmentMetadataKey(), None:
            group.target_epoch = 0
        case (
            ConsumerGroupTargetAssignmentMetadataKey(),
            ConsumerGroupTargetAssignmentMetadataValue() as complete,
        ):
            group.target_epoch = complete.assignment_epoch
        case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue() as begun:
            group.epoch = begun.epoch
            group.metadata_hash = begun.metadata_hash
        case ConsumerGroupRegularExpressionKey() as key, None:
            group.patterns.pop(key.regular_expression, None)
        case (
            ConsumerGroupRegularExpressionKey() as key,
            ConsumerGroupRegularExpressionValue() as resolved,
        ):
            group.patterns[key.regular_expression] = ResolvedPattern(
                frozenset(resolved.topics), resolved.timestamp
            )
        case ConsumerGroupPartitionMetadataKey(), value:
            group.has_partition_metadata = value is not None
        case _:
            raise TypeError(f"{type(change[0]).__name__} is not of a consumer group")


def _apply_member(group: ConsumerGroup, member_id: str, value: Message | None) -> None:
    if value is None:
        group.drop(member_id)
        return
    assert isinstance(value, ConsumerGroupMemberMetadataValue)
    stored = value.classic_member_metadata
    classic = None
    if stored is not None and stored.supported_protocols:
        protocols = tuple((each.name, each.metadata) for each in stored.supported_protocols)
        classic = ClassicSide(stored.session_timeout_ms, protocols)
    group.put(
        replace(
            group.members.get(member_id) or ConsumerMember(member_id),
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=tuple(value.subscribed_topic_names),
            pattern=value.subscribed_topic_regex or None,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=classic,
        )
    )


def _apply_assignment(group: ConsumerGroup, member_id: str, value: Message | None) -> None:
    member = group.members.get(member_id)
    if value is None:
        if member is not None:
            group.put(replace(member, epoch=0, assigned={}, revoking={}))
        return
    assert isinstance(value, ConsumerGroupCurrentMemberAssignmentValue)
    known = {each.value for each in MemberState}
    group.put(
        replace(
            member or ConsumerMember(member_id),
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if value.state in known else MemberState.UNKNOWN,
            assigned=_read_epochs(value.assigned_partitions, value.member_epoch),
            revoking=_read_epochs(value.partitions_pending_revocation, value.member_epoch),
        )
    )


def _read_epochs(stored: list[TopicPartitions], epoch: int) -> dict[PartitionKey, int]:
    """Partitions with the epochs they were assigned in; older records do not have those."""
    found: dict[PartitionKey, int] = {}
    for topic in stored:
        epochs = topic.assignment_epochs or []
        for place, index in enumerate(topic.partitions):
            found[topic.topic_id, index] = epochs[place] if place < len(epochs) else epoch
    return found
