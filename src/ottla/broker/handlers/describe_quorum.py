"""DescribeQuorum: who keeps the metadata. Here that is the controller, alone."""

from __future__ import annotations

from typing import Final

from ottla.broker.cluster_view import ClusterView
from ottla.broker.request import RequestContext
from ottla.errors import ErrorCode
from ottla.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)

METADATA_TOPIC: Final = "__cluster_metadata"
"""The name clients ask for; the metadata is not a log, and so its offsets are 0."""
_ONLY_PARTITION: Final = 0


class DescribeQuorumHandler:
    """Shows the controller as a quorum of one."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    async def handle(
        self, request: DescribeQuorumRequest, context: RequestContext
    ) -> DescribeQuorumResponse:
        return DescribeQuorumResponse(
            error_message=None,
            topics=[
                TopicData(
                    topic.topic_name,
                    [
                        self._described(topic.topic_name, partition.partition_index)
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topics
            ],
            nodes=[
                Node(broker.id, [Listener("CONTROLLER", broker.host, broker.port)])
                for broker in self._view.brokers(context.peer)
                if broker.id == self._view.image.controller_id
            ],
        )

    def refuse(self, _request: DescribeQuorumRequest, code: ErrorCode) -> DescribeQuorumResponse:
        return DescribeQuorumResponse(error_code=code, error_message=code.sentence)

    def _described(self, topic: str, partition: int) -> PartitionData:
        if topic != METADATA_TOPIC or partition != _ONLY_PARTITION:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return PartitionData(partition, code, code.sentence)
        image = self._view.image
        return PartitionData(
            partition_index=partition,
            error_message=None,
            leader_id=image.controller_id,
            leader_epoch=image.controller_epoch,
            current_voters=[ReplicaState(image.controller_id)],
        )
