"""The messages of DescribeQuorum, api key 55."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import (
    NO_UUID,
    Array,
    Int16,
    Int32,
    Int64,
    Message,
    Schema,
    String,
    Uint16,
    Uuid,
)


class PartitionRequestData(Message):
    partition_index: Annotated[int, Int32("0+")] = 0


class TopicRequestData(Message):
    topic_name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[PartitionRequestData], Array("0+")] = []


class DescribeQuorumRequest(Message):
    """Ask who keeps the metadata of the cluster."""

    schema: ClassVar[Schema] = Schema(api_key=55, versions="0-2", flexible="0+")
    topics: Annotated[list[TopicRequestData], Array("0+")] = []


class ReplicaState(Message):
    replica_id: Annotated[int, Int32("0+")] = 0
    replica_directory_id: Annotated[bytes, Uuid("2+")] = NO_UUID
    log_end_offset: Annotated[int, Int64("0+")] = 0
    last_fetch_timestamp: Annotated[int, Int64("1+")] = -1
    last_caught_up_timestamp: Annotated[int, Int64("1+")] = -1


class PartitionData(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("2+", nullable="2+")] = ""
    leader_id: Annotated[int, Int32("0+")] = 0
    leader_epoch: Annotated[int, Int32("0+")] = 0
    high_watermark: Annotated[int, Int64("0+")] = 0
    current_voters: Annotated[list[ReplicaState], Array("0+")] = []
    observers: Annotated[list[ReplicaState], Array("0+")] = []


class TopicData(Message):
    topic_name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[PartitionData], Array("0+")] = []


class Listener(Message):
    name: Annotated[str, String("2+")] = ""
    host: Annotated[str, String("2+")] = ""
    port: Annotated[int, Uint16("2+")] = 0


class Node(Message):
    node_id: Annotated[int, Int32("2+")] = 0
    listeners: Annotated[list[Listener], Array("2+")] = []


class DescribeQuorumResponse(Message):
    """Who leads, and who else has a voice."""

    schema: ClassVar[Schema] = Schema(api_key=55, versions="0-2", flexible="0+")
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("2+", nullable="2+")] = ""
    topics: Annotated[list[TopicData], Array("0+")] = []
    nodes: Annotated[list[Node], Array("2+")] = []
