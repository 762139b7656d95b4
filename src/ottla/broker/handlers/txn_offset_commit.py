"""TxnOffsetCommit: commit a group's offsets when, and only if, a transaction commits."""

from __future__ import annotations

from typing import Final

from ottla.broker.group_coordinator import GroupCoordinator
from ottla.broker.handlers.group_request import caller_of
from ottla.broker.request import RequestContext
from ottla.broker.transaction_guard import TransactionGuard, enrolment
from ottla.coordination.group.failures import refused
from ottla.errors import ErrorCode
from ottla.model.ids import ProducerEpoch, ProducerId
from ottla.protocol.message import Message
from ottla.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from ottla.records.builder import ProducerStamp

FIRST_VERSION_TOLD_TO_ABORT: Final = 4
FIRST_VERSION_THAT_ADDS_OFFSETS: Final = 5


class TxnOffsetCommitHandler:
    """Writes offsets as part of a transaction."""

    def __init__(self, groups: GroupCoordinator, guard: TransactionGuard) -> None:
        self._groups = groups
        self._guard = guard

    async def handle(self, request: TxnOffsetCommitRequest, context: RequestContext) -> Message:
        running = self._groups.find(request.group_id)
        producer = ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch)
        partition = self._groups.partition_of(request.group_id)
        how = enrolment(
            context.version,
            abortable_from=FIRST_VERSION_TOLD_TO_ABORT,
            implied_from=FIRST_VERSION_THAT_ADDS_OFFSETS,
        )
        barred = await self._guard.admit(request.transactional_id, producer, [partition], how)
        if partition in barred:
            return refused(request, barred[partition])
        groups, caller = running.shard.groups, caller_of(context)
        return await running.runtime.ask(
            lambda ticket, now_ms: groups.txn_offset_commit(request, caller, ticket, now_ms),
            ProducerStamp(*producer, is_transactional=True),
        )

    def refuse(self, request: TxnOffsetCommitRequest, code: ErrorCode) -> Message:
        return refused(request, code)
