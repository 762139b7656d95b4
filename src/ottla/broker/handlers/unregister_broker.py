"""UnregisterBroker: a broker is registered for as long as it runs, and by itself."""

from __future__ import annotations

from ottla.broker.cluster_view import ClusterView
from ottla.broker.request import RequestContext
from ottla.errors import ErrorCode
from ottla.model.ids import BrokerId
from ottla.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


class UnregisterBrokerHandler:
    """Tells that the broker is gone already, or that it runs."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    def handle(
        self, request: UnregisterBrokerRequest, _context: RequestContext
    ) -> UnregisterBrokerResponse:
        broker = BrokerId(request.broker_id)
        if broker in self._view.image.brokers:
            return UnregisterBrokerResponse(
                error_code=ErrorCode.INVALID_REQUEST,
                error_message=f"broker {broker} runs: it is unregistered when it stops",
            )
        return UnregisterBrokerResponse(
            error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
            error_message=f"broker {broker} is not registered",
        )

    def refuse(
        self, _request: UnregisterBrokerRequest, code: ErrorCode
    ) -> UnregisterBrokerResponse:
        return UnregisterBrokerResponse(error_code=code, error_message=code.sentence)
