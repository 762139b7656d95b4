"""FindCoordinator: which broker keeps a group or a transactional id."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final

from ottla.broker.cluster_view import BrokerAddress, ClusterView
from ottla.broker.coordinator import Coordinator, TopicCreator
from ottla.broker.request import RequestContext
from ottla.errors import ErrorCode, InvalidRequest, OttlaError, RequestFailed
from ottla.protocol.messages.find_coordinator import (
    Coordinator as CoordinatorAnswer,
)
from ottla.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

FIRST_VERSION_WITH_KEYS: Final = 4
_NOBODY: Final = -1


class KeyType(IntEnum):
    """What is coordinated."""

    GROUP = 0
    TRANSACTION = 1


class FindCoordinatorHandler:
    """Finds coordinators; the first question brings the internal topic into being."""

    def __init__(
        self,
        coordinators: Mapping[KeyType, Coordinator[Any]],
        creator: TopicCreator,
        view: ClusterView,
    ) -> None:
        self._coordinators = coordinators
        self._creator = creator
        self._view = view

    async def handle(
        self, request: FindCoordinatorRequest, context: RequestContext
    ) -> FindCoordinatorResponse:
        if context.version >= FIRST_VERSION_WITH_KEYS:
            keys = request.coordinator_keys
        else:
            keys = [request.key]
        answers = [await self._find(request.key_type, key, context) for key in keys]
        if context.version >= FIRST_VERSION_WITH_KEYS:
            return FindCoordinatorResponse(coordinators=answers)
        (only,) = answers
        return FindCoordinatorResponse(
            error_code=only.error_code,
            error_message=only.error_message,
            node_id=only.node_id,
            host=only.host,
            port=only.port,
        )

    def refuse(self, request: FindCoordinatorRequest, code: ErrorCode) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(
            error_code=code,
            error_message=code.sentence,
            node_id=_NOBODY,
            port=_NOBODY,
            coordinators=[_nobody(key, code, code.sentence) for key in request.coordinator_keys],
        )

    async def _find(self, key_type: int, key: str, context: RequestContext) -> CoordinatorAnswer:
        try:
            broker = await self._broker(key_type, key, context)
        except OttlaError as error:
            return _nobody(key, error.code, str(error))
        return CoordinatorAnswer(key, broker.id, broker.host, broker.port, 0, None)

    async def _broker(self, key_type: int, key: str, context: RequestContext) -> BrokerAddress:
        coordinator = next(
            (found for kind, found in self._coordinators.items() if kind == key_type), None
        )
        if coordinator is None:
            raise InvalidRequest(f"nothing of type {key_type} is coordinated here")
        if key_type == KeyType.TRANSACTION and not key:
            raise InvalidRequest("a transactional id cannot be empty")
        await coordinator.ensure_topic(self._creator)
        await coordinator.wait_loaded(key)
        leader = coordinator.broker_of(key)
        for broker in self._view.brokers(context.peer):
            if broker.id == leader:
                return broker
        raise RequestFailed(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _nobody(key: str, code: ErrorCode, message: str) -> CoordinatorAnswer:
    return CoordinatorAnswer(key, _NOBODY, "", _NOBODY, code, message)
