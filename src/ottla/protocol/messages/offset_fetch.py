"""The messages of OffsetFetch, api key 9."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import (
    NO_UUID,
    Array,
    Bool,
    Int16,
    Int32,
    Int64,
    Message,
    Schema,
    String,
    Uuid,
)


class OffsetFetchRequestTopic(Message):
    name: Annotated[str, String("0-7")] = ""
    partition_indexes: Annotated[list[int], Array("0-7", of=Int32)] = []


class OffsetFetchRequestTopics(Message):
    name: Annotated[str, String("8-9")] = ""
    topic_id: Annotated[bytes, Uuid("10+")] = NO_UUID
    partition_indexes: Annotated[list[int], Array("8+", of=Int32)] = []


class OffsetFetchRequestGroup(Message):
    group_id: Annotated[str, String("8+")] = ""
    member_id: Annotated[str | None, String("9+", nullable="9+")] = None
    member_epoch: Annotated[int, Int32("9+")] = -1
    topics: Annotated[list[OffsetFetchRequestTopics] | None, Array("8+", nullable="8+")] = []


class OffsetFetchRequest(Message):
    """Ask how far groups have read."""

    schema: ClassVar[Schema] = Schema(api_key=9, versions="0-10", flexible="6+")
    group_id: Annotated[str, String("0-7")] = ""
    topics: Annotated[list[OffsetFetchRequestTopic] | None, Array("0-7", nullable="2-7")] = []
    groups: Annotated[list[OffsetFetchRequestGroup], Array("8+")] = []
    require_stable: Annotated[bool, Bool("7+")] = False


class OffsetFetchResponsePartition(Message):
    partition_index: Annotated[int, Int32("0-7")] = 0
    committed_offset: Annotated[int, Int64("0-7")] = 0
    committed_leader_epoch: Annotated[int, Int32("5-7")] = -1
    metadata: Annotated[str | None, String("0-7", nullable="0-7")] = ""
    error_code: Annotated[int, Int16("0-7")] = 0


class OffsetFetchResponseTopic(Message):
    name: Annotated[str, String("0-7")] = ""
    partitions: Annotated[list[OffsetFetchResponsePartition], Array("0-7")] = []


class OffsetFetchResponsePartitions(Message):
    partition_index: Annotated[int, Int32("8+")] = 0
    committed_offset: Annotated[int, Int64("8+")] = 0
    committed_leader_epoch: Annotated[int, Int32("8+")] = -1
    metadata: Annotated[str | None, String("8+", nullable="8+")] = ""
    error_code: Annotated[int, Int16("8+")] = 0


class OffsetFetchResponseTopics(Message):
    name: Annotated[str, String("8-9")] = ""
    topic_id: Annotated[bytes, Uuid("10+")] = NO_UUID
    partitions: Annotated[list[OffsetFetchResponsePartitions], Array("8+")] = []


class OffsetFetchResponseGroup(Message):
    group_id: Annotated[str, String("8+")] = ""
    topics: Annotated[list[OffsetFetchResponseTopics], Array("8+")] = []
    error_code: Annotated[int, Int16("8+")] = 0


class OffsetFetchResponse(Message):
    """The stored offsets of each group."""

    schema: ClassVar[Schema] = Schema(api_key=9, versions="0-10", flexible="6+")
    throttle_time_ms: Annotated[int, Int32("3+")] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], Array("0-7")] = []
    error_code: Annotated[int, Int16("2-7")] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], Array("8+")] = []
