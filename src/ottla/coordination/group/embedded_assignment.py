"""The assignment of a classic member of a consumer group, in the form the member can read."""

from __future__ import annotations

from ottla.coordination.group.assignors.spec import PartitionKey, Partitions, partitions_by_topic
from ottla.coordination.group.consumer_member import ConsumerMember
from ottla.coordination.group.embedded_protocol import version_of, write_assignment
from ottla.coordination.group.topics import Topics
from ottla.model.ids import TopicId
from ottla.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)


def assignment_bytes(member: ConsumerMember, topics: Topics) -> bytes:
    """What a classic member has, by the names of the topics."""
    assert member.classic is not None
    assigned = []
    for topic_id, indexes in partitions_by_topic(member.assigned).items():
        name = topics.name_of(TopicId(topic_id))
        if name is not None:
            assigned.append(
                ConsumerProtocolAssignmentTopicPartition(topic=name, partitions=indexes)
            )
    version = version_of(member.classic.protocols[0][1])
    return write_assignment(ConsumerProtocolAssignment(assigned_partitions=assigned), version)


def owned_by(subscription: ConsumerProtocolSubscription, topics: Topics) -> Partitions:
    """What a classic member says it has; one that says nothing has given everything up."""
    owned: set[PartitionKey] = set()
    for topic in subscription.owned_partitions:
        topic_id = topics.id_of(topic.topic)
        if topic_id is not None:
            owned.update((bytes(topic_id), index) for index in topic.partitions)
    return frozenset(owned)
