"""The messages of OffsetForLeaderEpoch, api key 23."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int16, Int32, Int64, Message, Schema, String


class OffsetForLeaderPartition(Message):
    partition: Annotated[int, Int32("0+")] = 0
    current_leader_epoch: Annotated[int, Int32("2+")] = -1
    leader_epoch: Annotated[int, Int32("0+")] = 0


class OffsetForLeaderTopic(Message):
    topic: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[OffsetForLeaderPartition], Array("0+")] = []


class OffsetForLeaderEpochRequest(Message):
    """Ask where a leader epoch ended, to find where two logs part."""

    schema: ClassVar[Schema] = Schema(api_key=23, versions="0-4", flexible="4+")
    replica_id: Annotated[int, Int32("3+")] = -2
    topics: Annotated[list[OffsetForLeaderTopic], Array("0+")] = []


class EpochEndOffset(Message):
    error_code: Annotated[int, Int16("0+")] = 0
    partition: Annotated[int, Int32("0+")] = 0
    leader_epoch: Annotated[int, Int32("1+")] = -1
    end_offset: Annotated[int, Int64("0+")] = -1


class OffsetForLeaderTopicResult(Message):
    topic: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[EpochEndOffset], Array("0+")] = []


class OffsetForLeaderEpochResponse(Message):
    """The end offset of each epoch asked for."""

    schema: ClassVar[Schema] = Schema(api_key=23, versions="0-4", flexible="4+")
    throttle_time_ms: Annotated[int, Int32("2+")] = 0
    topics: Annotated[list[OffsetForLeaderTopicResult], Array("0+")] = []
