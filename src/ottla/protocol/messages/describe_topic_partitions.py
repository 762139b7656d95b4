"""The messages of DescribeTopicPartitions, api key 75.

A response has one field that Kafka's has not, under a tag that other clients pass over: why
replicas are not in sync.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, ClassVar, Final

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

NOT_KNOWN: Final = -1
"""Stands for a time or a number that nobody knows."""


class AbsenceCause(IntEnum):
    """Why a replica left the set in sync."""

    UNKNOWN = 0
    SESSION_ENDED = 1
    """Its broker died, or was cut off from the metadata."""
    STOPPED = 2
    """Its broker said that it stops."""
    SILENT = 3
    """It asked its leader for nothing any more."""
    BEHIND = 4
    """It asked, and did not catch up."""


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


class ReplicaAbsence(Message):
    """A replica that is not in sync: as it was when it left, and as its leader sees it now."""

    replica_id: Annotated[int, Int32("0+")] = 0
    cause: Annotated[int, Int8("0+")] = AbsenceCause.UNKNOWN
    left_ms: Annotated[int, Int64("0+")] = NOT_KNOWN
    silent_ms: Annotated[int, Int64("0+")] = NOT_KNOWN
    lag_ms: Annotated[int, Int64("0+")] = NOT_KNOWN
    lag_records: Annotated[int, Int64("0+")] = NOT_KNOWN
    silent_now_ms: Annotated[int, Int64("0+")] = NOT_KNOWN
    lag_records_now: Annotated[int, Int64("0+")] = NOT_KNOWN


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
    absences: Annotated[list[ReplicaAbsence], Array("0+", tag=10_000)] = []


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
