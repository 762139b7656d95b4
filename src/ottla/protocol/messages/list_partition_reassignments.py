"""The messages of ListPartitionReassignments, api key 46."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int16, Int32, Message, Schema, String


class ListPartitionReassignmentsTopics(Message):
    name: Annotated[str, String("0+")] = ""
    partition_indexes: Annotated[list[int], Array("0+", of=Int32)] = []


class ListPartitionReassignmentsRequest(Message):
    """Ask which partitions are being moved."""

    schema: ClassVar[Schema] = Schema(api_key=46, versions="0", flexible="0+")
    timeout_ms: Annotated[int, Int32("0+")] = 60000
    topics: Annotated[list[ListPartitionReassignmentsTopics] | None, Array("0+", nullable="0+")] = (
        None
    )


class OngoingPartitionReassignment(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    replicas: Annotated[list[int], Array("0+", of=Int32)] = []
    adding_replicas: Annotated[list[int], Array("0+", of=Int32)] = []
    removing_replicas: Annotated[list[int], Array("0+", of=Int32)] = []


class OngoingTopicReassignment(Message):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[OngoingPartitionReassignment], Array("0+")] = []


class ListPartitionReassignmentsResponse(Message):
    """The moves under way."""

    schema: ClassVar[Schema] = Schema(api_key=46, versions="0", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""
    topics: Annotated[list[OngoingTopicReassignment], Array("0+")] = []
