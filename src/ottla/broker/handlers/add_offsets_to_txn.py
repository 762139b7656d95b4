"""AddOffsetsToTxn: make a group's offsets part of a transaction."""

from __future__ import annotations

from ottla.broker.coordinator import TopicCreator
from ottla.broker.group_coordinator import GroupCoordinator
from ottla.broker.handlers.group_request import caller_of
from ottla.broker.request import RequestContext
from ottla.broker.transaction_coordinator import TransactionCoordinator
from ottla.errors import ErrorCode
from ottla.protocol.message import Message
from ottla.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)


class AddOffsetsToTxnHandler:
    """Adds the partition of __consumer_offsets that keeps the group."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        groups: GroupCoordinator,
        creator: TopicCreator,
    ) -> None:
        self._coordinator = coordinator
        self._groups = groups
        self._creator = creator

    async def handle(self, request: AddOffsetsToTxnRequest, context: RequestContext) -> Message:
        await self._groups.ensure_topic(self._creator)
        partition = self._groups.partition_of(request.group_id)
        running = self._coordinator.find(request.transactional_id)
        shard, caller = running.shard.transactions, caller_of(context)
        return await running.runtime.ask(
            lambda ticket, now_ms: shard.add_offsets(request, caller, ticket, now_ms, partition)
        )

    def refuse(self, _request: AddOffsetsToTxnRequest, code: ErrorCode) -> AddOffsetsToTxnResponse:
        return AddOffsetsToTxnResponse(error_code=code)
