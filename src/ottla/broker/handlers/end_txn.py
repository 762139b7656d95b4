"""EndTxn: commit or abort a transaction."""

from __future__ import annotations

from ottla.broker.handlers.group_request import caller_of
from ottla.broker.request import RequestContext
from ottla.broker.transaction_coordinator import TransactionCoordinator, fresh_producer_id
from ottla.cluster.producer_ids import ProducerIds
from ottla.errors import ErrorCode
from ottla.protocol.message import Message
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse


class EndTxnHandler:
    """Ends transactions; a producer whose epochs are used up goes on with another id."""

    def __init__(self, coordinator: TransactionCoordinator, producer_ids: ProducerIds) -> None:
        self._coordinator = coordinator
        self._producer_ids = producer_ids

    async def handle(self, request: EndTxnRequest, context: RequestContext) -> Message:
        running = self._coordinator.find(request.transactional_id)
        shard, caller = running.shard.transactions, caller_of(context)
        spare = None
        if shard.needs_producer_id(request.transactional_id):
            spare = await fresh_producer_id(self._producer_ids)
        return await running.runtime.ask(
            lambda ticket, now_ms: shard.end_txn(request, caller, ticket, now_ms, spare)
        )

    def refuse(self, _request: EndTxnRequest, code: ErrorCode) -> EndTxnResponse:
        return EndTxnResponse(error_code=code)
