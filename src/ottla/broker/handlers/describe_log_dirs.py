"""DescribeLogDirs: what lies in the data directory and how much room is left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ottla.broker.partition import Partition
from ottla.broker.partitions import Partitions
from ottla.broker.request import RequestContext
from ottla.errors import ErrorCode
from ottla.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


class DescribeLogDirsHandler:
    """Tells sizes."""

    def __init__(self, partitions: Partitions, data_directory: Path) -> None:
        self._partitions = partitions
        self._data_directory = data_directory

    async def handle(
        self, request: DescribeLogDirsRequest, _context: RequestContext
    ) -> DescribeLogDirsResponse:
        topics: dict[str, DescribeLogDirsTopic] = {}
        for partition in self._wanted(request):
            name = partition.id.topic
            topic = topics.setdefault(name, DescribeLogDirsTopic(name))
            topic.partitions.append(
                DescribeLogDirsPartition(partition.id.partition, partition.log.segments.size_bytes)
            )
        disk = os.statvfs(self._data_directory)
        result = DescribeLogDirsResult(
            log_dir=str(self._data_directory.resolve()),
            topics=list(topics.values()),
            total_bytes=disk.f_blocks * disk.f_frsize,
            usable_bytes=disk.f_bavail * disk.f_frsize,
        )
        return DescribeLogDirsResponse(results=[result])

    def refuse(self, _request: DescribeLogDirsRequest, code: ErrorCode) -> DescribeLogDirsResponse:
        return DescribeLogDirsResponse(error_code=code)

    def _wanted(self, request: DescribeLogDirsRequest) -> Iterator[Partition]:
        if request.topics is None:
            yield from self._partitions
            return
        for topic in request.topics:
            held = self._partitions.of_topic(topic.topic)
            for index in topic.partitions:
                if index in held:
                    yield held[index]
