"""AlterReplicaLogDirs: move partitions to another data directory. There is only one."""

from __future__ import annotations

from pathlib import Path

from ottla.broker.partitions import Partitions
from ottla.broker.request import RequestContext
from ottla.errors import ErrorCode, OttlaError
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


class AlterReplicaLogDirsHandler:
    """Grants what is so already."""

    def __init__(self, partitions: Partitions, data_directory: Path) -> None:
        self._partitions = partitions
        self._data_directory = data_directory

    async def handle(
        self, request: AlterReplicaLogDirsRequest, _context: RequestContext
    ) -> AlterReplicaLogDirsResponse:
        own = str(self._data_directory.resolve())
        return AlterReplicaLogDirsResponse(
            results=[
                AlterReplicaLogDirTopicResult(
                    topic.name,
                    [
                        AlterReplicaLogDirPartitionResult(
                            index, self._outcome(topic.name, index, is_own=directory.path == own)
                        )
                        for index in topic.partitions
                    ],
                )
                for directory in request.dirs
                for topic in directory.topics
            ]
        )

    def refuse(
        self, request: AlterReplicaLogDirsRequest, code: ErrorCode
    ) -> AlterReplicaLogDirsResponse:
        return AlterReplicaLogDirsResponse(
            results=[
                AlterReplicaLogDirTopicResult(
                    topic.name,
                    [AlterReplicaLogDirPartitionResult(index, code) for index in topic.partitions],
                )
                for directory in request.dirs
                for topic in directory.topics
            ]
        )

    def _outcome(self, topic: str, index: int, *, is_own: bool) -> ErrorCode:
        if not is_own:
            return ErrorCode.LOG_DIR_NOT_FOUND
        try:
            self._partitions.find(topic, index)
        except OttlaError as error:
            return error.code
        return ErrorCode.NONE
