"""Answers that say only what went wrong, for each request of the group coordinator."""

from __future__ import annotations

from typing import Final

from ottla.errors import ErrorCode
from ottla.protocol.message import Message
from ottla.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ottla.protocol.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from ottla.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
)
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_AFTER_FAILED_WRITE: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What a client is told when the coordinator's own write failed."""
_TOO_LARGE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


def code_after_failed_write(code: ErrorCode, response: Message | None = None) -> ErrorCode:
    """What to tell clients of a failed write: something they know how to handle."""
    if code in _TOO_LARGE and isinstance(response, OffsetCommitResponse | TxnOffsetCommitResponse):
        # Apache Kafka's coordinator says UNKNOWN_SERVER_ERROR, from which nobody learns the cause.
        return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    return _AFTER_FAILED_WRITE.get(code, code)


def refused(request: Message, code: ErrorCode) -> Message:
    """The answer to a request that cannot be decided here, or at all."""
    match request:
        case JoinGroupRequest():
            return JoinGroupResponse(error_code=code, member_id=request.member_id)
        case SyncGroupRequest():
            return SyncGroupResponse(error_code=code)
        case HeartbeatRequest():
            return HeartbeatResponse(error_code=code)
        case LeaveGroupRequest():
            return LeaveGroupResponse(error_code=code)
        case OffsetCommitRequest():
            return _commit_refused(request, code)
        case TxnOffsetCommitRequest():
            return _txn_commit_refused(request, code)
        case OffsetDeleteRequest():
            return OffsetDeleteResponse(error_code=code)
        case ConsumerGroupHeartbeatRequest():
            return ConsumerGroupHeartbeatResponse(error_code=code)
        case _:
            return _administration_refused(request, code)


def _administration_refused(request: Message, code: ErrorCode) -> Message:
    match request:
        case ListGroupsRequest():
            return ListGroupsResponse(error_code=code)
        case DescribeGroupsRequest():
            return DescribeGroupsResponse(
                groups=[DescribedGroup(group_id=each, error_code=code) for each in request.groups]
            )
        case ConsumerGroupDescribeRequest():
            return ConsumerGroupDescribeResponse(
                groups=[
                    DescribedConsumerGroup(group_id=each, error_code=code)
                    for each in request.group_ids
                ]
            )
        case DeleteGroupsRequest():
            results = [
                DeletableGroupResult(group_id=each, error_code=code)
                for each in request.groups_names
            ]
            return DeleteGroupsResponse(results=results)
        case _:
            raise TypeError(f"{type(request).__name__} is not a request of the group coordinator")


def failed(response: Message, code: ErrorCode) -> Message:
    """The answer that takes the place of `response` when what it says was not written."""
    match response:
        case JoinGroupResponse():
            return JoinGroupResponse(error_code=code, member_id="")
        case SyncGroupResponse():
            return SyncGroupResponse(error_code=code)
        case LeaveGroupResponse():
            return LeaveGroupResponse(error_code=code)
        case OffsetCommitResponse() | TxnOffsetCommitResponse():
            for topic in response.topics:
                for partition in topic.partitions:
                    partition.error_code = partition.error_code or code
        case DeleteGroupsResponse():
            for result in response.results:
                result.error_code = result.error_code or code
        case OffsetDeleteResponse():
            return OffsetDeleteResponse(error_code=response.error_code or code)
        case ConsumerGroupHeartbeatResponse():
            return ConsumerGroupHeartbeatResponse(error_code=code)
        case HeartbeatResponse():
            return HeartbeatResponse(error_code=code)
        case _:
            raise TypeError(f"{type(response).__name__} is not an answer of the group coordinator")
    return response


def _commit_refused(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    topics = [
        OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return OffsetCommitResponse(topics=topics)


def _txn_commit_refused(
    request: TxnOffsetCommitRequest, code: ErrorCode
) -> TxnOffsetCommitResponse:
    topics = [
        TxnOffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                TxnOffsetCommitResponsePartition(
                    partition_index=each.partition_index, error_code=code
                )
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return TxnOffsetCommitResponse(topics=topics)
