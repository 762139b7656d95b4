"""InitProducerId: a number that tells one idempotent producer from all others."""

from __future__ import annotations

from ottla.broker.request import RequestContext
from ottla.cluster.producer_ids import ProducerIds
from ottla.errors import ErrorCode
from ottla.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)


class InitProducerIdHandler:
    """Gives out producer ids. Transactional ids need a coordinator, which this broker lacks."""

    def __init__(self, producer_ids: ProducerIds) -> None:
        self._producer_ids = producer_ids

    async def handle(
        self, request: InitProducerIdRequest, _context: RequestContext
    ) -> InitProducerIdResponse:
        if request.transactional_id is not None:
            return self.refuse(request, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return InitProducerIdResponse(producer_id=await self._producer_ids.next())

    def refuse(self, _request: InitProducerIdRequest, code: ErrorCode) -> InitProducerIdResponse:
        return InitProducerIdResponse(error_code=code)
