"""WriteTxnMarkers: end transactions in partitions here, by order of a coordinator or operator."""

from __future__ import annotations

import asyncio

from ottla.broker.request import RequestContext
from ottla.broker.transaction_markers import MarkerWriter
from ottla.coordination.transaction.decision import WriteMarkers
from ottla.errors import ErrorCode
from ottla.model.ids import ProducerEpoch, ProducerId, TopicPartition
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


class WriteTxnMarkersHandler:
    """Writes markers."""

    def __init__(self, writer: MarkerWriter) -> None:
        self._writer = writer

    async def handle(
        self, request: WriteTxnMarkersRequest, _context: RequestContext
    ) -> WriteTxnMarkersResponse:
        response = self.refuse(request, ErrorCode.NONE)
        wanted = [
            (TopicPartition(topic.name, partition.partition_index), _order(marker), partition)
            for marker, result in zip(request.markers, response.markers, strict=True)
            for topic in result.topics
            for partition in topic.partitions
        ]
        # All are written before the first is waited for.
        codes = await asyncio.gather(
            *(self._writer.attempt(name, order) for name, order, _ in wanted)
        )
        for (_, _, partition), code in zip(wanted, codes, strict=True):
            partition.error_code = code
        return response

    def refuse(self, request: WriteTxnMarkersRequest, code: ErrorCode) -> WriteTxnMarkersResponse:
        return WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    marker.producer_id,
                    [
                        WritableTxnMarkerTopicResult(
                            topic.name,
                            [
                                WritableTxnMarkerPartitionResult(index, code)
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in request.markers
            ]
        )


def _order(marker: WritableTxnMarker) -> WriteMarkers:
    return WriteMarkers(
        "",
        ProducerId(marker.producer_id),
        ProducerEpoch(marker.producer_epoch),
        marker.coordinator_epoch,
        marker.transaction_result,
        (),
        marker.transaction_version,
        0,
    )
