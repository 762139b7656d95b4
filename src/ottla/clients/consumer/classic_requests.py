"""The requests of a classic group's member, filled in."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ottla.clients.consumer.embedded import sticky_memory, subscription_bytes
from ottla.clients.consumer.group_place import GroupPlace
from ottla.clients.consumer.settings import ConsumerSettings
from ottla.model.ids import TopicPartition
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

PROTOCOL_TYPE: Final = "consumer"


def protocol(
    name: str,
    topics: Collection[str],
    owned: Collection[TopicPartition],
    generation: int,
    *,
    rack: str = "",
    memory: Collection[TopicPartition] = (),
) -> JoinGroupRequestProtocol:
    """An assignor this member can work with, and what it must know of the member."""
    user_data = sticky_memory(sorted(memory), generation) if name == "sticky" else None
    metadata = subscription_bytes(topics, owned, generation, rack=rack, user_data=user_data)
    return JoinGroupRequestProtocol(name=name, metadata=metadata)


def join_request(
    settings: ConsumerSettings, place: GroupPlace, protocols: list[JoinGroupRequestProtocol]
) -> JoinGroupRequest:
    """Joins, or joins again."""
    return JoinGroupRequest(
        group_id=place.group_id,
        session_timeout_ms=settings.session_timeout_ms,
        rebalance_timeout_ms=settings.max_poll_interval_ms,
        member_id=place.member_id,
        group_instance_id=place.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=protocols,
    )


def sync_request(
    place: GroupPlace, protocol_name: str, shares: list[SyncGroupRequestAssignment]
) -> SyncGroupRequest:
    """Gives the leader's assignment, if this is the leader, and asks for one's own."""
    return SyncGroupRequest(
        group_id=place.group_id,
        generation_id=place.generation,
        member_id=place.member_id,
        group_instance_id=place.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=protocol_name,
        assignments=shares,
    )


def heartbeat_request(place: GroupPlace) -> HeartbeatRequest:
    """Says that the member is alive."""
    return HeartbeatRequest(
        group_id=place.group_id,
        generation_id=place.generation,
        member_id=place.member_id,
        group_instance_id=place.instance_id,
    )


def leave_request(place: GroupPlace) -> LeaveGroupRequest:
    """Says good-bye."""
    return LeaveGroupRequest(
        group_id=place.group_id,
        member_id=place.member_id,
        members=[MemberIdentity(member_id=place.member_id, reason="the consumer is closed")],
    )
