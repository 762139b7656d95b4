"""The messages of CreatePartitions, api key 37."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Bool, Int16, Int32, Message, Schema, String


class CreatePartitionsAssignment(Message):
    broker_ids: Annotated[list[int], Array("0+", of=Int32)] = []


class CreatePartitionsTopic(Message):
    name: Annotated[str, String("0+")] = ""
    count: Annotated[int, Int32("0+")] = 0
    assignments: Annotated[list[CreatePartitionsAssignment] | None, Array("0+", nullable="0+")] = []


class CreatePartitionsRequest(Message):
    """Give topics more partitions."""

    schema: ClassVar[Schema] = Schema(api_key=37, versions="0-3", flexible="2+")
    topics: Annotated[list[CreatePartitionsTopic], Array("0+")] = []
    timeout_ms: Annotated[int, Int32("0+")] = 0
    validate_only: Annotated[bool, Bool("0+")] = False


class CreatePartitionsTopicResult(Message):
    name: Annotated[str, String("0+")] = ""
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None


class CreatePartitionsResponse(Message):
    """Whether each topic has the partitions asked for."""

    schema: ClassVar[Schema] = Schema(api_key=37, versions="0-3", flexible="2+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    results: Annotated[list[CreatePartitionsTopicResult], Array("0+")] = []
