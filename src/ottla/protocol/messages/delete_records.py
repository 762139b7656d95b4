"""The messages of DeleteRecords, api key 21."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int16, Int32, Int64, Message, Schema, String


class DeleteRecordsPartition(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    offset: Annotated[int, Int64("0+")] = 0


class DeleteRecordsTopic(Message):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[DeleteRecordsPartition], Array("0+")] = []


class DeleteRecordsRequest(Message):
    """Drop all records before an offset."""

    schema: ClassVar[Schema] = Schema(api_key=21, versions="0-2", flexible="2+")
    topics: Annotated[list[DeleteRecordsTopic], Array("0+")] = []
    timeout_ms: Annotated[int, Int32("0+")] = 0


class DeleteRecordsPartitionResult(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    low_watermark: Annotated[int, Int64("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0


class DeleteRecordsTopicResult(Message):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[DeleteRecordsPartitionResult], Array("0+")] = []


class DeleteRecordsResponse(Message):
    """The new start offset of each partition."""

    schema: ClassVar[Schema] = Schema(api_key=21, versions="0-2", flexible="2+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    topics: Annotated[list[DeleteRecordsTopicResult], Array("0+")] = []
