"""InitProducerId: a number that tells one producer from all others."""

from __future__ import annotations

from ottla.broker.handlers.group_request import caller_of
from ottla.broker.request import RequestContext
from ottla.broker.transaction_coordinator import TransactionCoordinator, fresh_producer_id
from ottla.cluster.producer_ids import ProducerIds
from ottla.errors import ErrorCode
from ottla.protocol.message import Message
from ottla.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)


class InitProducerIdHandler:
    """Gives out producer ids; with a transactional id, the coordinator does."""

    def __init__(self, producer_ids: ProducerIds, coordinator: TransactionCoordinator) -> None:
        self._producer_ids = producer_ids
        self._coordinator = coordinator

    async def handle(self, request: InitProducerIdRequest, context: RequestContext) -> Message:
        if request.transactional_id is None:
            producer_id = await fresh_producer_id(self._producer_ids)
            return InitProducerIdResponse(producer_id=producer_id)
        if not request.transactional_id:
            return self.refuse(request, ErrorCode.INVALID_REQUEST)
        running = self._coordinator.find(request.transactional_id)
        shard, caller = running.shard.transactions, caller_of(context)
        spare = None
        if shard.needs_producer_id(request.transactional_id):
            spare = await fresh_producer_id(self._producer_ids)
        return await running.runtime.ask(
            lambda ticket, now_ms: shard.init_producer_id(request, caller, ticket, now_ms, spare)
        )

    def refuse(self, _request: InitProducerIdRequest, code: ErrorCode) -> InitProducerIdResponse:
        return InitProducerIdResponse(error_code=code, producer_epoch=-1)
