"""The messages of DescribeProducers, api key 61."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int16, Int32, Int64, Message, Schema, String


class TopicRequest(Message):
    name: Annotated[str, String("0+")] = ""
    partition_indexes: Annotated[list[int], Array("0+", of=Int32)] = []


class DescribeProducersRequest(Message):
    """Ask which producers are active on partitions."""

    schema: ClassVar[Schema] = Schema(api_key=61, versions="0", flexible="0+")
    topics: Annotated[list[TopicRequest], Array("0+")] = []


class ProducerState(Message):
    producer_id: Annotated[int, Int64("0+")] = 0
    producer_epoch: Annotated[int, Int32("0+")] = 0
    last_sequence: Annotated[int, Int32("0+")] = -1
    last_timestamp: Annotated[int, Int64("0+")] = -1
    coordinator_epoch: Annotated[int, Int32("0+")] = 0
    current_txn_start_offset: Annotated[int, Int64("0+")] = -1


class PartitionResponse(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    active_producers: Annotated[list[ProducerState], Array("0+")] = []


class TopicResponse(Message):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[PartitionResponse], Array("0+")] = []


class DescribeProducersResponse(Message):
    """The producers each partition remembers."""

    schema: ClassVar[Schema] = Schema(api_key=61, versions="0", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    topics: Annotated[list[TopicResponse], Array("0+")] = []
