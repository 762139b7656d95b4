"""The messages of Fetch, api key 1."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import (
    NO_UUID,
    Array,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Nested,
    RecordData,
    Records,
    Schema,
    String,
    Uuid,
)


class ReplicaState(Message):
    replica_id: Annotated[int, Int32("15+")] = -1
    replica_epoch: Annotated[int, Int64("15+")] = -1


class FetchPartition(Message):
    partition: Annotated[int, Int32("0+")] = 0
    current_leader_epoch: Annotated[int, Int32("9+")] = -1
    fetch_offset: Annotated[int, Int64("0+")] = 0
    last_fetched_epoch: Annotated[int, Int32("12+")] = -1
    log_start_offset: Annotated[int, Int64("5+")] = -1
    partition_max_bytes: Annotated[int, Int32("0+")] = 0
    replica_directory_id: Annotated[bytes, Uuid("17+", tag=0)] = NO_UUID
    high_watermark: Annotated[int, Int64("18+", tag=1)] = 9_223_372_036_854_775_807


class FetchTopic(Message):
    topic: Annotated[str, String("0-12")] = ""
    topic_id: Annotated[bytes, Uuid("13+")] = NO_UUID
    partitions: Annotated[list[FetchPartition], Array("0+")] = []


class ForgottenTopic(Message):
    topic: Annotated[str, String("7-12")] = ""
    topic_id: Annotated[bytes, Uuid("13+")] = NO_UUID
    partitions: Annotated[list[int], Array("7+", of=Int32)] = []


class FetchRequest(Message):
    """Read records from partitions, waiting a while if there are too few."""

    schema: ClassVar[Schema] = Schema(api_key=1, versions="0-18", flexible="12+")
    cluster_id: Annotated[str | None, String("12+", nullable="12+", tag=0)] = None
    replica_id: Annotated[int, Int32("0-14")] = -1
    replica_state: Annotated[ReplicaState | None, Nested("15+", tag=1)] = None
    max_wait_ms: Annotated[int, Int32("0+")] = 0
    min_bytes: Annotated[int, Int32("0+")] = 0
    max_bytes: Annotated[int, Int32("3+")] = 2_147_483_647
    isolation_level: Annotated[int, Int8("4+")] = 0
    session_id: Annotated[int, Int32("7+")] = 0
    session_epoch: Annotated[int, Int32("7+")] = -1
    topics: Annotated[list[FetchTopic], Array("0+")] = []
    forgotten_topics_data: Annotated[list[ForgottenTopic], Array("7+")] = []
    rack_id: Annotated[str, String("11+")] = ""


class EpochEndOffset(Message):
    epoch: Annotated[int, Int32("12+")] = -1
    end_offset: Annotated[int, Int64("12+")] = -1


class LeaderIdAndEpoch(Message):
    leader_id: Annotated[int, Int32("12+")] = -1
    leader_epoch: Annotated[int, Int32("12+")] = -1


class SnapshotId(Message):
    end_offset: Annotated[int, Int64("0+")] = -1
    epoch: Annotated[int, Int32("0+")] = -1


class AbortedTransaction(Message):
    producer_id: Annotated[int, Int64("4+")] = 0
    first_offset: Annotated[int, Int64("4+")] = 0


class PartitionData(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    high_watermark: Annotated[int, Int64("0+")] = 0
    last_stable_offset: Annotated[int, Int64("4+")] = -1
    log_start_offset: Annotated[int, Int64("5+")] = -1
    diverging_epoch: Annotated[EpochEndOffset | None, Nested("12+", tag=0)] = None
    current_leader: Annotated[LeaderIdAndEpoch | None, Nested("12+", tag=1)] = None
    snapshot_id: Annotated[SnapshotId | None, Nested("12+", tag=2)] = None
    aborted_transactions: Annotated[
        list[AbortedTransaction] | None, Array("4+", nullable="4+")
    ] = []
    preferred_read_replica: Annotated[int, Int32("11+")] = -1
    records: Annotated[RecordData | None, Records("0+", nullable="0+")] = None


class FetchableTopicResponse(Message):
    topic: Annotated[str, String("0-12")] = ""
    topic_id: Annotated[bytes, Uuid("13+")] = NO_UUID
    partitions: Annotated[list[PartitionData], Array("0+")] = []


class NodeEndpoint(Message):
    node_id: Annotated[int, Int32("16+")] = 0
    host: Annotated[str, String("16+")] = ""
    port: Annotated[int, Int32("16+")] = 0
    rack: Annotated[str | None, String("16+", nullable="16+")] = None


class FetchResponse(Message):
    """The records of each partition and how far it may be read."""

    schema: ClassVar[Schema] = Schema(api_key=1, versions="0-18", flexible="12+")
    throttle_time_ms: Annotated[int, Int32("1+")] = 0
    error_code: Annotated[int, Int16("7+")] = 0
    session_id: Annotated[int, Int32("7+")] = 0
    responses: Annotated[list[FetchableTopicResponse], Array("0+")] = []
    node_endpoints: Annotated[list[NodeEndpoint], Array("16+", tag=0)] = []
