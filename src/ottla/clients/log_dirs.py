"""Where brokers keep their data, and how much of it there is."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.clients.client import Client
from ottla.clients.failures import check_answer, error_code
from ottla.errors import ErrorCode
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)


@dataclass(frozen=True, slots=True)
class LogDir:
    """One data directory of one broker; sizes are -1 where the broker does not say."""

    broker: BrokerId
    path: str
    error: ErrorCode
    total_bytes: int
    usable_bytes: int
    partition_bytes: dict[TopicPartition, int]

    @property
    def used_bytes(self) -> int:
        """The bytes of all partitions in it."""
        return sum(self.partition_bytes.values())


async def describe_log_dirs(client: Client, broker: BrokerId) -> list[LogDir]:
    """The data directories of one broker with every partition in them."""
    request = DescribeLogDirsRequest(topics=None)

    async def attempt() -> DescribeLogDirsResponse:
        response = await client.call(request, DescribeLogDirsResponse, to=broker)
        check_answer(response.error_code, f"the data directories of broker {broker}")
        return response

    response = await client.retrying(attempt)
    return [
        LogDir(
            broker=broker,
            path=result.log_dir,
            error=error_code(result.error_code),
            total_bytes=result.total_bytes,
            usable_bytes=result.usable_bytes,
            partition_bytes={
                TopicPartition(topic.name, partition.partition_index): partition.partition_size
                for topic in result.topics
                for partition in topic.partitions
                if not partition.is_future_key
            },
        )
        for result in response.results
    ]
