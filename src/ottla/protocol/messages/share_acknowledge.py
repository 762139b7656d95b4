"""The messages of ShareAcknowledge, api key 79."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import field

from ottla.protocol.message import (
    NO_UUID,
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Nested,
    Schema,
    String,
    Uuid,
)


class AcknowledgementBatch(Message):
    first_offset: Annotated[int, Int64("0+")] = 0
    last_offset: Annotated[int, Int64("0+")] = 0
    acknowledge_types: Annotated[list[int], Array("0+", of=Int8)] = []


class AcknowledgePartition(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    acknowledgement_batches: Annotated[list[AcknowledgementBatch], Array("0+")] = []


class AcknowledgeTopic(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[AcknowledgePartition], Array("0+")] = []


class ShareAcknowledgeRequest(Message):
    """Acknowledge records of a share group."""

    schema: ClassVar[Schema] = Schema(api_key=79, versions="0-2", flexible="0+", unstable="0")
    group_id: Annotated[str | None, String("0+", nullable="0+")] = None
    member_id: Annotated[str | None, String("0+", nullable="0+")] = ""
    share_session_epoch: Annotated[int, Int32("0+")] = 0
    is_renew_ack: Annotated[bool, Bool("2+")] = False
    topics: Annotated[list[AcknowledgeTopic], Array("0+")] = []


class LeaderIdAndEpoch(Message):
    leader_id: Annotated[int, Int32("0+")] = 0
    leader_epoch: Annotated[int, Int32("0+")] = 0


class PartitionData(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    current_leader: Annotated[LeaderIdAndEpoch, Nested("0+")] = field(
        default_factory=LeaderIdAndEpoch
    )


class ShareAcknowledgeTopicResponse(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[PartitionData], Array("0+")] = []


class NodeEndpoint(Message):
    node_id: Annotated[int, Int32("0+")] = 0
    host: Annotated[str, String("0+")] = ""
    port: Annotated[int, Int32("0+")] = 0
    rack: Annotated[str | None, String("0+", nullable="0+")] = None


class ShareAcknowledgeResponse(Message):
    """The outcome of each partition's acknowledgements."""

    schema: ClassVar[Schema] = Schema(api_key=79, versions="0-2", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    acquisition_lock_timeout_ms: Annotated[int, Int32("2+")] = 0
    responses: Annotated[list[ShareAcknowledgeTopicResponse], Array("0+")] = []
    node_endpoints: Annotated[list[NodeEndpoint], Array("0+")] = []
