"""The messages of ElectLeaders, api key 43."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int8, Int16, Int32, Message, Schema, String


class TopicPartitions(Message):
    topic: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []


class ElectLeadersRequest(Message):
    """Elect leaders for partitions, preferred or unclean."""

    schema: ClassVar[Schema] = Schema(api_key=43, versions="0-2", flexible="2+")
    election_type: Annotated[int, Int8("1+")] = 0
    topic_partitions: Annotated[list[TopicPartitions] | None, Array("0+", nullable="0+")] = []
    timeout_ms: Annotated[int, Int32("0+")] = 60000


class PartitionResult(Message):
    partition_id: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""


class ReplicaElectionResult(Message):
    topic: Annotated[str, String("0+")] = ""
    partition_result: Annotated[list[PartitionResult], Array("0+")] = []


class ElectLeadersResponse(Message):
    """The outcome for each partition."""

    schema: ClassVar[Schema] = Schema(api_key=43, versions="0-2", flexible="2+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("1+")] = 0
    replica_election_results: Annotated[list[ReplicaElectionResult], Array("0+")] = []
