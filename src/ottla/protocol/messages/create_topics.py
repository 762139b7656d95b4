"""The messages of CreateTopics, api key 19."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import (
    NO_UUID,
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Message,
    Schema,
    String,
    Uuid,
)


class CreatableReplicaAssignment(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    broker_ids: Annotated[list[int], Array("0+", of=Int32)] = []


class CreatableTopicConfig(Message):
    name: Annotated[str, String("0+")] = ""
    value: Annotated[str | None, String("0+", nullable="0+")] = ""


class CreatableTopic(Message):
    name: Annotated[str, String("0+")] = ""
    num_partitions: Annotated[int, Int32("0+")] = 0
    replication_factor: Annotated[int, Int16("0+")] = 0
    assignments: Annotated[list[CreatableReplicaAssignment], Array("0+")] = []
    configs: Annotated[list[CreatableTopicConfig], Array("0+")] = []


class CreateTopicsRequest(Message):
    """Create topics, or only check that they could be created."""

    schema: ClassVar[Schema] = Schema(api_key=19, versions="0-7", flexible="5+")
    topics: Annotated[list[CreatableTopic], Array("0+")] = []
    timeout_ms: Annotated[int, Int32("0+")] = 60000
    validate_only: Annotated[bool, Bool("1+")] = False


class CreatableTopicConfigs(Message):
    name: Annotated[str, String("5+")] = ""
    value: Annotated[str | None, String("5+", nullable="5+")] = ""
    read_only: Annotated[bool, Bool("5+")] = False
    config_source: Annotated[int, Int8("5+")] = -1
    is_sensitive: Annotated[bool, Bool("5+")] = False


class CreatableTopicResult(Message):
    name: Annotated[str, String("0+")] = ""
    topic_id: Annotated[bytes, Uuid("7+")] = NO_UUID
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("1+", nullable="1+")] = ""
    topic_config_error_code: Annotated[int, Int16("5+", tag=0)] = 0
    num_partitions: Annotated[int, Int32("5+")] = -1
    replication_factor: Annotated[int, Int16("5+")] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, Array("5+", nullable="5+")] = []


class CreateTopicsResponse(Message):
    """Which topics were created, with their settings."""

    schema: ClassVar[Schema] = Schema(api_key=19, versions="0-7", flexible="5+")
    throttle_time_ms: Annotated[int, Int32("2+")] = 0
    topics: Annotated[list[CreatableTopicResult], Array("0+")] = []
