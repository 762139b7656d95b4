"""The messages of DescribeTopicPartitions, api key 75."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import (
    NO_UUID,
    Array,
    Bool,
    Int16,
    Int32,
    Message,
    Nested,
    Schema,
    String,
    Uuid,
)


class TopicRequest(Message):
    name: Annotated[str, String("0+")] = ""


class Cursor(Message):
    topic_name: Annotated[str, String("0+")] = ""
    partition_index: Annotated[int, Int32("0+")] = 0


class DescribeTopicPartitionsRequest(Message):
    """Ask for topics' partitions, page by page."""

    schema: ClassVar[Schema] = Schema(api_key=75, versions="0", flexible="0+")
    topics: Annotated[list[TopicRequest], Array("0+")] = []
    response_partition_limit: Annotated[int, Int32("0+")] = 2000
    cursor: Annotated[Cursor | None, Nested("0+", nullable="0+")] = None


class DescribeTopicPartitionsResponsePartition(Message):
    error_code: Annotated[int, Int16("0+")] = 0
    partition_index: Annotated[int, Int32("0+")] = 0
    leader_id: Annotated[int, Int32("0+")] = 0
    leader_epoch: Annotated[int, Int32("0+")] = -1
    replica_nodes: Annotated[list[int], Array("0+", of=Int32)] = []
    isr_nodes: Annotated[list[int], Array("0+", of=Int32)] = []
    eligible_leader_replicas: Annotated[list[int] | None, Array("0+", of=Int32, nullable="0+")] = (
        None
    )
    last_known_elr: Annotated[list[int] | None, Array("0+", of=Int32, nullable="0+")] = None
    offline_replicas: Annotated[list[int], Array("0+", of=Int32)] = []


class DescribeTopicPartitionsResponseTopic(Message):
    error_code: Annotated[int, Int16("0+")] = 0
    name: Annotated[str | None, String("0+", nullable="0+")] = ""
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    is_internal: Annotated[bool, Bool("0+")] = False
    partitions: Annotated[list[DescribeTopicPartitionsResponsePartition], Array("0+")] = []
    topic_authorized_operations: Annotated[int, Int32("0+")] = -2_147_483_648


class DescribeTopicPartitionsResponse(Message):
    """One page of topics and partitions, and where the next begins."""

    schema: ClassVar[Schema] = Schema(api_key=75, versions="0", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    topics: Annotated[list[DescribeTopicPartitionsResponseTopic], Array("0+")] = []
    next_cursor: Annotated[Cursor | None, Nested("0+", nullable="0+")] = None
