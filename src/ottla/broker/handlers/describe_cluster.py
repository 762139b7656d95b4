"""DescribeCluster: the cluster's id, its brokers and which of them is the controller."""

from __future__ import annotations

from typing import Final

from ottla.broker.cluster_view import ClusterView
from ottla.broker.request import RequestContext
from ottla.errors import ErrorCode
from ottla.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

ENDPOINTS_OF_BROKERS: Final = 1


class DescribeClusterHandler:
    """Describes the cluster without its topics."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    async def handle(
        self, request: DescribeClusterRequest, context: RequestContext
    ) -> DescribeClusterResponse:
        if request.endpoint_type != ENDPOINTS_OF_BROKERS:
            return self.refuse(request, ErrorCode.MISMATCHED_ENDPOINT_TYPE)
        return DescribeClusterResponse(
            endpoint_type=request.endpoint_type,
            cluster_id=self._view.image.cluster_id,
            controller_id=self._view.image.controller_id,
            brokers=[
                DescribeClusterBroker(broker.id, broker.host, broker.port, broker.rack)
                for broker in self._view.brokers(context.peer)
            ],
        )

    def refuse(self, request: DescribeClusterRequest, code: ErrorCode) -> DescribeClusterResponse:
        return DescribeClusterResponse(
            error_code=code, error_message=code.sentence, endpoint_type=request.endpoint_type
        )
