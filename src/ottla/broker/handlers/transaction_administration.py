"""DescribeTransactions, ListTransactions and DescribeProducers: who writes in which transaction."""

from __future__ import annotations

from ottla.broker.partitions import Partitions
from ottla.broker.request import RequestContext
from ottla.broker.transaction_coordinator import TransactionCoordinator
from ottla.errors import ErrorCode, OttlaError
from ottla.model.clock import Clock
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from ottla.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from ottla.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)


class DescribeTransactionsHandler:
    """Describes transactional ids."""

    def __init__(self, coordinator: TransactionCoordinator) -> None:
        self._coordinator = coordinator

    async def handle(
        self, request: DescribeTransactionsRequest, _context: RequestContext
    ) -> DescribeTransactionsResponse:
        return DescribeTransactionsResponse(
            transaction_states=[await self._describe(each) for each in request.transactional_ids]
        )

    def refuse(
        self, request: DescribeTransactionsRequest, code: ErrorCode
    ) -> DescribeTransactionsResponse:
        return DescribeTransactionsResponse(
            transaction_states=[TransactionState(code, each) for each in request.transactional_ids]
        )

    async def _describe(self, transactional_id: str) -> TransactionState:
        try:
            running = self._coordinator.find(transactional_id)
            shard = running.shard.transactions
            return await running.runtime.read(lambda: shard.describe(transactional_id))
        except OttlaError as error:
            return TransactionState(error.code, transactional_id)


class ListTransactionsHandler:
    """Lists the transactional ids of all shards here."""

    def __init__(self, coordinator: TransactionCoordinator, clock: Clock) -> None:
        self._coordinator = coordinator
        self._clock = clock

    async def handle(
        self, request: ListTransactionsRequest, _context: RequestContext
    ) -> ListTransactionsResponse:
        response = ListTransactionsResponse()
        for running in self._coordinator:
            running.runtime.check_ready()
            part = running.shard.transactions.list_transactions(request, self._clock.now_ms())
            if part.error_code:
                return part
            response.transaction_states += part.transaction_states
            response.unknown_state_filters = part.unknown_state_filters
        return response

    def refuse(
        self, _request: ListTransactionsRequest, code: ErrorCode
    ) -> ListTransactionsResponse:
        return ListTransactionsResponse(error_code=code)


class DescribeProducersHandler:
    """Describes the producers that partitions remember."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    async def handle(
        self, request: DescribeProducersRequest, _context: RequestContext
    ) -> DescribeProducersResponse:
        return DescribeProducersResponse(
            topics=[
                TopicResponse(
                    topic.name,
                    [self._describe(topic.name, index) for index in topic.partition_indexes],
                )
                for topic in request.topics
            ]
        )

    def refuse(
        self, request: DescribeProducersRequest, code: ErrorCode
    ) -> DescribeProducersResponse:
        return DescribeProducersResponse(
            topics=[
                TopicResponse(
                    topic.name,
                    [
                        PartitionResponse(index, code, code.sentence)
                        for index in topic.partition_indexes
                    ],
                )
                for topic in request.topics
            ]
        )

    def _describe(self, topic: str, index: int) -> PartitionResponse:
        try:
            partition = self._partitions.find(topic, index)
            partition.check_leads()
        except OttlaError as error:
            return PartitionResponse(index, error.code, str(error))
        return PartitionResponse(
            index,
            active_producers=[
                ProducerState(
                    entry.producer_id,
                    entry.epoch,
                    entry.last_sequence,
                    entry.last_timestamp,
                    entry.coordinator_epoch,
                    -1 if entry.transaction_start is None else entry.transaction_start,
                )
                for entry in partition.log.producers.entries()
            ],
        )
