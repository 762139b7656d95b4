"""The messages of AlterPartitionReassignments, api key 45."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Bool, Int16, Int32, Message, Schema, String


class ReassignablePartition(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    replicas: Annotated[list[int] | None, Array("0+", of=Int32, nullable="0+")] = None


class ReassignableTopic(Message):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[ReassignablePartition], Array("0+")] = []


class AlterPartitionReassignmentsRequest(Message):
    """Begin or cancel moving partitions to other brokers."""

    schema: ClassVar[Schema] = Schema(api_key=45, versions="0-1", flexible="0+")
    timeout_ms: Annotated[int, Int32("0+")] = 60000
    allow_replication_factor_change: Annotated[bool, Bool("1+")] = True
    topics: Annotated[list[ReassignableTopic], Array("0+")] = []


class ReassignablePartitionResponse(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""


class ReassignableTopicResponse(Message):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[ReassignablePartitionResponse], Array("0+")] = []


class AlterPartitionReassignmentsResponse(Message):
    """Whether each move was begun or cancelled."""

    schema: ClassVar[Schema] = Schema(api_key=45, versions="0-1", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    allow_replication_factor_change: Annotated[bool, Bool("1+")] = True
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""
    responses: Annotated[list[ReassignableTopicResponse], Array("0+")] = []
