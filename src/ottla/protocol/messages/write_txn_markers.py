"""The messages of WriteTxnMarkers, api key 27."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Bool, Int8, Int16, Int32, Int64, Message, Schema, String


class WritableTxnMarkerTopic(Message):
    name: Annotated[str, String("0+")] = ""
    partition_indexes: Annotated[list[int], Array("0+", of=Int32)] = []


class WritableTxnMarker(Message):
    producer_id: Annotated[int, Int64("0+")] = 0
    producer_epoch: Annotated[int, Int16("0+")] = 0
    transaction_result: Annotated[bool, Bool("0+")] = False
    topics: Annotated[list[WritableTxnMarkerTopic], Array("0+")] = []
    coordinator_epoch: Annotated[int, Int32("0+")] = 0
    transaction_version: Annotated[int, Int8("2+")] = 0


class WriteTxnMarkersRequest(Message):
    """Write the end of transactions into the partitions they touched."""

    schema: ClassVar[Schema] = Schema(api_key=27, versions="0-2", flexible="1+")
    markers: Annotated[list[WritableTxnMarker], Array("0+")] = []


class WritableTxnMarkerPartitionResult(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0


class WritableTxnMarkerTopicResult(Message):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[WritableTxnMarkerPartitionResult], Array("0+")] = []


class WritableTxnMarkerResult(Message):
    producer_id: Annotated[int, Int64("0+")] = 0
    topics: Annotated[list[WritableTxnMarkerTopicResult], Array("0+")] = []


class WriteTxnMarkersResponse(Message):
    """Whether each marker was written."""

    schema: ClassVar[Schema] = Schema(api_key=27, versions="0-2", flexible="1+")
    markers: Annotated[list[WritableTxnMarkerResult], Array("0+")] = []
