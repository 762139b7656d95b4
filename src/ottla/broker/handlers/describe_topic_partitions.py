"""DescribeTopicPartitions: topics page by page, for clients that meet very many partitions.

Of partitions that this broker leads it also says why replicas are not in sync.
"""

from __future__ import annotations

from ottla.broker.absences import Absences, absences_in
from ottla.broker.cluster_view import ClusterView
from ottla.broker.partitions import Partitions
from ottla.broker.request import RequestContext
from ottla.cluster.image import PartitionImage, TopicImage
from ottla.errors import ErrorCode
from ottla.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


class DescribeTopicPartitionsHandler:
    """Describes partitions, at most `partitions_max` in one answer."""

    def __init__(
        self, view: ClusterView, partitions: Partitions, absences: Absences, partitions_max: int
    ) -> None:
        self._view = view
        self._partitions = partitions
        self._absences = absences
        self._partitions_max = partitions_max

    async def handle(
        self, request: DescribeTopicPartitionsRequest, _context: RequestContext
    ) -> DescribeTopicPartitionsResponse:
        left = max(1, min(request.response_partition_limit, self._partitions_max))
        cursor = request.cursor
        response = DescribeTopicPartitionsResponse()
        for name in self._names(request):
            start = cursor.partition_index if cursor and cursor.topic_name == name else 0
            if left <= 0:
                response.next_cursor = Cursor(name, start)
                break
            topic = self._view.image.topics.get(name)
            if topic is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                response.topics.append(DescribeTopicPartitionsResponseTopic(code, name))
                continue
            end = min(len(topic.partitions), start + left)
            response.topics.append(self._page(topic, start, end))
            left -= end - start
            if end < len(topic.partitions):
                response.next_cursor = Cursor(name, end)
                break
        return response

    def refuse(
        self, request: DescribeTopicPartitionsRequest, code: ErrorCode
    ) -> DescribeTopicPartitionsResponse:
        return DescribeTopicPartitionsResponse(
            topics=[
                DescribeTopicPartitionsResponseTopic(code, wanted.name) for wanted in request.topics
            ]
        )

    def _names(self, request: DescribeTopicPartitionsRequest) -> list[str]:
        """The topics asked for from the cursor on, in the order that cursors rely on."""
        names = [wanted.name for wanted in request.topics] or list(self._view.image.topics)
        first = request.cursor.topic_name if request.cursor else ""
        return sorted({name for name in names if name >= first})

    def _page(
        self, topic: TopicImage, start: int, end: int
    ) -> DescribeTopicPartitionsResponseTopic:
        described = [_partition(index, topic.partitions[index]) for index in range(start, end)]
        held = self._partitions.of_topic(topic.name)
        for index, answer in enumerate(described, start):
            own = held.get(index)
            if own is not None and own.topic_id == topic.id:
                answer.absences = absences_in(own, topic.partitions[index], self._absences)
        return DescribeTopicPartitionsResponseTopic(
            0, topic.name, topic.id, topic.is_internal, described
        )


def _partition(index: int, partition: PartitionImage) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        0 if partition.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
        index,
        partition.leader,
        partition.leader_epoch,
        list(partition.replicas),
        list(partition.isr),
        [],
        [],
    )
