"""The messages of ShareFetch, api key 78."""

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
    RecordData,
    Records,
    Schema,
    String,
    Uuid,
)


class AcknowledgementBatch(Message):
    first_offset: Annotated[int, Int64("0+")] = 0
    last_offset: Annotated[int, Int64("0+")] = 0
    acknowledge_types: Annotated[list[int], Array("0+", of=Int8)] = []


class FetchPartition(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    partition_max_bytes: Annotated[int, Int32("0")] = 0
    acknowledgement_batches: Annotated[list[AcknowledgementBatch], Array("0+")] = []


class FetchTopic(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[FetchPartition], Array("0+")] = []


class ForgottenTopic(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []


class ShareFetchRequest(Message):
    """Acquire records of a share group and acknowledge earlier ones."""

    schema: ClassVar[Schema] = Schema(api_key=78, versions="0-2", flexible="0+", unstable="0")
    group_id: Annotated[str | None, String("0+", nullable="0+")] = None
    member_id: Annotated[str | None, String("0+", nullable="0+")] = ""
    share_session_epoch: Annotated[int, Int32("0+")] = 0
    max_wait_ms: Annotated[int, Int32("0+")] = 0
    min_bytes: Annotated[int, Int32("0+")] = 0
    max_bytes: Annotated[int, Int32("0+")] = 2_147_483_647
    max_records: Annotated[int, Int32("1+")] = 0
    batch_size: Annotated[int, Int32("1+")] = 0
    share_acquire_mode: Annotated[int, Int8("2+")] = 0
    is_renew_ack: Annotated[bool, Bool("2+")] = False
    topics: Annotated[list[FetchTopic], Array("0+")] = []
    forgotten_topics_data: Annotated[list[ForgottenTopic], Array("0+")] = []


class LeaderIdAndEpoch(Message):
    leader_id: Annotated[int, Int32("0+")] = 0
    leader_epoch: Annotated[int, Int32("0+")] = 0


class AcquiredRecords(Message):
    first_offset: Annotated[int, Int64("0+")] = 0
    last_offset: Annotated[int, Int64("0+")] = 0
    delivery_count: Annotated[int, Int16("0+")] = 0


class PartitionData(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    acknowledge_error_code: Annotated[int, Int16("0+")] = 0
    acknowledge_error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    current_leader: Annotated[LeaderIdAndEpoch, Nested("0+")] = field(
        default_factory=LeaderIdAndEpoch
    )
    records: Annotated[RecordData | None, Records("0+", nullable="0")] = None
    acquired_records: Annotated[list[AcquiredRecords], Array("0+")] = []


class ShareFetchableTopicResponse(Message):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[PartitionData], Array("0+")] = []


class NodeEndpoint(Message):
    node_id: Annotated[int, Int32("0+")] = 0
    host: Annotated[str, String("0+")] = ""
    port: Annotated[int, Int32("0+")] = 0
    rack: Annotated[str | None, String("0+", nullable="0+")] = None


class ShareFetchResponse(Message):
    """The acquired records and the outcome of the acknowledgements."""

    schema: ClassVar[Schema] = Schema(api_key=78, versions="0-2", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    acquisition_lock_timeout_ms: Annotated[int, Int32("1+")] = 0
    responses: Annotated[list[ShareFetchableTopicResponse], Array("0+")] = []
    node_endpoints: Annotated[list[NodeEndpoint], Array("0+")] = []
