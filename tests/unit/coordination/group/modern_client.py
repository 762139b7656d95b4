"""Steps of consumers of the consumer protocol that tests take again and again."""

from __future__ import annotations

from ottla.errors import ErrorCode
from ottla.model.ids import TopicId
from ottla.protocol.messages.consumer_group_describe import DescribedGroup
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from unit.coordination.group.requests import GROUP
from unit.coordination.group.runtime import Runtime

Owned = dict[str, list[int]]


def hello(
    member_id: str, *topics: str, instance: str | None = None, pattern: str | None = None
) -> ConsumerGroupHeartbeatRequest:
    """The request that joins."""
    return ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id=member_id,
        member_epoch=0,
        instance_id=instance,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=list(topics) or ([] if pattern else ["orders"]),
        subscribed_topic_regex=pattern,
        topic_partitions=[],
    )


def still_here(
    runtime: Runtime, member_id: str, epoch: int, owned: Owned | None = None
) -> ConsumerGroupHeartbeatRequest:
    """A heartbeat that tells nothing new, save perhaps what the member owns."""
    partitions = None
    if owned is not None:
        partitions = [
            TopicPartitions(topic_id=runtime.topics.ids[topic], partitions=indexes)
            for topic, indexes in owned.items()
        ]
    return ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id=member_id, member_epoch=epoch, topic_partitions=partitions
    )


def goodbye(
    member_id: str, epoch: int = -1, instance: str | None = None
) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id=member_id, member_epoch=epoch, instance_id=instance
    )


def tell(
    runtime: Runtime, request: ConsumerGroupHeartbeatRequest, *, version: int = 1
) -> ConsumerGroupHeartbeatResponse:
    return runtime.ask(
        "consumer_group_heartbeat", request, ConsumerGroupHeartbeatResponse, version=version
    )


def told_ok(
    runtime: Runtime, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    answer = tell(runtime, request)
    assert answer.error_code == ErrorCode.NONE, answer.error_message
    return answer


def code_of(runtime: Runtime, request: ConsumerGroupHeartbeatRequest) -> ErrorCode:
    return ErrorCode(tell(runtime, request).error_code)


def given(runtime: Runtime, answer: ConsumerGroupHeartbeatResponse) -> Owned | None:
    """The assignment in an answer by name; None where it has none."""
    if answer.assignment is None:
        return None
    return {
        str(runtime.topics.name_of(TopicId(each.topic_id))): each.partitions
        for each in answer.assignment.topic_partitions
    }


def described(runtime: Runtime) -> DescribedGroup:
    return runtime.shard.describe_consumer_group(GROUP)
