"""The messages of Metadata, api key 3."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import NO_UUID, Array, Bool, Int16, Int32, Message, Schema, String, Uuid


class MetadataRequestTopic(Message):
    topic_id: Annotated[bytes, Uuid("10+")] = NO_UUID
    name: Annotated[str | None, String("0+", nullable="10+")] = ""


class MetadataRequest(Message):
    """Ask which brokers there are and who leads the partitions of some topics."""

    schema: ClassVar[Schema] = Schema(api_key=3, versions="0-13", flexible="9+")
    topics: Annotated[list[MetadataRequestTopic] | None, Array("0+", nullable="1+")] = []
    allow_auto_topic_creation: Annotated[bool, Bool("4+")] = True
    include_cluster_authorized_operations: Annotated[bool, Bool("8-10")] = False
    include_topic_authorized_operations: Annotated[bool, Bool("8+")] = False


class MetadataResponseBroker(Message):
    node_id: Annotated[int, Int32("0+")] = 0
    host: Annotated[str, String("0+")] = ""
    port: Annotated[int, Int32("0+")] = 0
    rack: Annotated[str | None, String("1+", nullable="1+")] = None


class MetadataResponsePartition(Message):
    error_code: Annotated[int, Int16("0+")] = 0
    partition_index: Annotated[int, Int32("0+")] = 0
    leader_id: Annotated[int, Int32("0+")] = 0
    leader_epoch: Annotated[int, Int32("7+")] = -1
    replica_nodes: Annotated[list[int], Array("0+", of=Int32)] = []
    isr_nodes: Annotated[list[int], Array("0+", of=Int32)] = []
    offline_replicas: Annotated[list[int], Array("5+", of=Int32)] = []


class MetadataResponseTopic(Message):
    error_code: Annotated[int, Int16("0+")] = 0
    name: Annotated[str | None, String("0+", nullable="12+")] = ""
    topic_id: Annotated[bytes, Uuid("10+")] = NO_UUID
    is_internal: Annotated[bool, Bool("1+")] = False
    partitions: Annotated[list[MetadataResponsePartition], Array("0+")] = []
    topic_authorized_operations: Annotated[int, Int32("8+")] = -2_147_483_648


class MetadataResponse(Message):
    """The brokers, topics and partition leaders as this broker knows them."""

    schema: ClassVar[Schema] = Schema(api_key=3, versions="0-13", flexible="9+")
    throttle_time_ms: Annotated[int, Int32("3+")] = 0
    brokers: Annotated[list[MetadataResponseBroker], Array("0+")] = []
    cluster_id: Annotated[str | None, String("2+", nullable="2+")] = None
    controller_id: Annotated[int, Int32("1+")] = -1
    topics: Annotated[list[MetadataResponseTopic], Array("0+")] = []
    cluster_authorized_operations: Annotated[int, Int32("8-10")] = -2_147_483_648
    error_code: Annotated[int, Int16("13+")] = 0
