"""The messages of Produce, api key 0."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import (
    NO_UUID,
    Array,
    Int16,
    Int32,
    Int64,
    Message,
    Nested,
    Records,
    Schema,
    String,
    Uuid,
)


class PartitionProduceData(Message):
    index: Annotated[int, Int32("0+")] = 0
    records: Annotated[memoryview | None, Records("0+", nullable="0+")] = None


class TopicProduceData(Message):
    name: Annotated[str, String("0-12")] = ""
    topic_id: Annotated[bytes, Uuid("13+")] = NO_UUID
    partition_data: Annotated[list[PartitionProduceData], Array("0+")] = []


class ProduceRequest(Message):
    """Append records to partitions."""

    schema: ClassVar[Schema] = Schema(api_key=0, versions="0-13", flexible="9+")
    transactional_id: Annotated[str | None, String("3+", nullable="3+")] = None
    acks: Annotated[int, Int16("0+")] = 0
    timeout_ms: Annotated[int, Int32("0+")] = 0
    topic_data: Annotated[list[TopicProduceData], Array("0+")] = []


class BatchIndexAndErrorMessage(Message):
    batch_index: Annotated[int, Int32("8+")] = 0
    batch_index_error_message: Annotated[str | None, String("8+", nullable="8+")] = None


class LeaderIdAndEpoch(Message):
    leader_id: Annotated[int, Int32("10+")] = -1
    leader_epoch: Annotated[int, Int32("10+")] = -1


class PartitionProduceResponse(Message):
    index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    base_offset: Annotated[int, Int64("0+")] = 0
    log_append_time_ms: Annotated[int, Int64("2+")] = -1
    log_start_offset: Annotated[int, Int64("5+")] = -1
    record_errors: Annotated[list[BatchIndexAndErrorMessage], Array("8+")] = []
    error_message: Annotated[str | None, String("8+", nullable="8+")] = None
    current_leader: Annotated[LeaderIdAndEpoch | None, Nested("10+", tag=0)] = None


class TopicProduceResponse(Message):
    name: Annotated[str, String("0-12")] = ""
    topic_id: Annotated[bytes, Uuid("13+")] = NO_UUID
    partition_responses: Annotated[list[PartitionProduceResponse], Array("0+")] = []


class NodeEndpoint(Message):
    node_id: Annotated[int, Int32("10+")] = 0
    host: Annotated[str, String("10+")] = ""
    port: Annotated[int, Int32("10+")] = 0
    rack: Annotated[str | None, String("10+", nullable="10+")] = None


class ProduceResponse(Message):
    """Where each partition's records went, or why they did not."""

    schema: ClassVar[Schema] = Schema(api_key=0, versions="0-13", flexible="9+")
    responses: Annotated[list[TopicProduceResponse], Array("0+")] = []
    throttle_time_ms: Annotated[int, Int32("1+")] = 0
    node_endpoints: Annotated[list[NodeEndpoint], Array("10+", tag=0)] = []
