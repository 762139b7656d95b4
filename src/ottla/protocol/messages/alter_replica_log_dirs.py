"""The messages of AlterReplicaLogDirs, api key 34."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int16, Int32, Message, Schema, String


class AlterReplicaLogDirTopic(Message):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []


class AlterReplicaLogDir(Message):
    path: Annotated[str, String("0+")] = ""
    topics: Annotated[list[AlterReplicaLogDirTopic], Array("0+")] = []


class AlterReplicaLogDirsRequest(Message):
    """Move replicas to other data directories of the same broker."""

    schema: ClassVar[Schema] = Schema(api_key=34, versions="0-2", flexible="2+")
    dirs: Annotated[list[AlterReplicaLogDir], Array("0+")] = []


class AlterReplicaLogDirPartitionResult(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0


class AlterReplicaLogDirTopicResult(Message):
    topic_name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[AlterReplicaLogDirPartitionResult], Array("0+")] = []


class AlterReplicaLogDirsResponse(Message):
    """Whether each move was begun."""

    schema: ClassVar[Schema] = Schema(api_key=34, versions="0-2", flexible="2+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    results: Annotated[list[AlterReplicaLogDirTopicResult], Array("0+")] = []
