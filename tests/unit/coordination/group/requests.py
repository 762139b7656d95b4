"""Requests as a classic consumer sends them, with what a test does not care about filled in."""

from __future__ import annotations

from ottla.coordination.group.embedded_protocol import write_assignment
from ottla.protocol.codec import encode
from ottla.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUP = "readers"
SESSION_MS = 10_000
REBALANCE_MS = 60_000


def subscription(
    *topics: str, owned: dict[str, list[int]] | None = None, version: int = 1
) -> bytes:
    """What a consumer says in JoinGroup."""
    message = ConsumerProtocolSubscription(
        topics=list(topics),
        owned_partitions=[
            ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in (owned or {}).items()
        ],
    )
    return version.to_bytes(2, "big") + encode(message, version)


def assignment(**partitions: list[int]) -> bytes:
    """What a leader hands in for a member."""
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=indexes)
            for topic, indexes in partitions.items()
        ]
    )
    return write_assignment(message, 1)


def join(
    member_id: str = "",
    *,
    instance: str | None = None,
    protocols: tuple[str, ...] = ("range",),
    metadata: bytes | None = None,
    group: str = GROUP,
) -> JoinGroupRequest:
    said = subscription("orders") if metadata is None else metadata
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=REBALANCE_MS,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name=name, metadata=said) for name in protocols],
    )


def sync(
    member_id: str,
    generation: int,
    assignments: dict[str, bytes] | None = None,
    *,
    instance: str | None = None,
    protocol: str | None = "range",
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=GROUP,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocol_name=protocol,
        assignments=[
            SyncGroupRequestAssignment(member_id=each, assignment=data)
            for each, data in (assignments or {}).items()
        ],
    )


def beat(member_id: str, generation: int, *, instance: str | None = None) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=GROUP,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance,
    )


def leave(*members: str, instances: tuple[str, ...] = ()) -> LeaveGroupRequest:
    return LeaveGroupRequest(
        group_id=GROUP,
        members=[MemberIdentity(member_id=each) for each in members]
        + [MemberIdentity(member_id="", group_instance_id=each) for each in instances],
    )


def commit(
    offset: int,
    *,
    member_id: str = "",
    generation: int = -1,
    topic: str = "orders",
    partition: int = 0,
    metadata: str = "",
    group: str = GROUP,
) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group,
        member_id=member_id,
        generation_id_or_member_epoch=generation,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset,
                        committed_metadata=metadata,
                    )
                ],
            )
        ],
    )


def fetch(topic: str = "orders", partition: int = 0, group: str = GROUP) -> OffsetFetchRequestGroup:
    return OffsetFetchRequestGroup(
        group_id=group,
        topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])],
    )
