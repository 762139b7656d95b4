"""Who a producer is to the brokers: an id and an epoch, asked for once and kept."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ottla.clients.client import Client
from ottla.clients.failures import BrokerTooOld, check_answer
from ottla.clients.producer.batch import ProducerBatch
from ottla.errors import ErrorCode, OttlaError
from ottla.model.ids import TopicPartition
from ottla.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from ottla.records.builder import NO_PRODUCER, ProducerStamp

_log = logging.getLogger("ottla.clients.producer")


class Identity:
    """The id of a producer without transactions; any broker gives one."""

    __slots__ = ("_client", "_is_asked_for", "_task", "_wake", "identity")

    is_transactional = False
    adds_by_writing = False

    def __init__(self, client: Client, wake: Callable[[], None], *, is_asked_for: bool) -> None:
        self._client = client
        self._wake = wake
        self._is_asked_for = is_asked_for
        """The user said idempotence: going without would be a lie."""
        self._task: asyncio.Task[None] | None = None
        self.identity: ProducerStamp | None = None

    def may_send(self, where: TopicPartition) -> bool:
        """Every partition may be written."""
        del where
        return True

    def request(self) -> None:
        """Asks for an id in the background until there is one."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._ask())

    def failed(self, error: OttlaError, batch: ProducerBatch) -> None:
        """Nothing depends on one batch."""
        del error, batch

    def blocked(self) -> OttlaError | None:
        """Nothing stands in the way for good."""
        return None

    async def close(self) -> None:
        """Stops asking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _ask(self) -> None:
        try:
            self.identity = await self._client.retrying(self._attempt)
        except OttlaError as error:
            cannot = (
                isinstance(error, BrokerTooOld)
                or error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            )
            if cannot and not self._is_asked_for:
                self.identity = NO_PRODUCER
            _log.warning("no producer id: %s", error)
        self._wake()

    async def _attempt(self) -> ProducerStamp:
        response = await self._client.call(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000),
            InitProducerIdResponse,
        )
        check_answer(response.error_code, "a producer id")
        return ProducerStamp(response.producer_id, response.producer_epoch, 0)
