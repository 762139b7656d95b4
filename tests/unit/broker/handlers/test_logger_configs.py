"""A request about loggers and other things is answered as a whole."""

from __future__ import annotations

import asyncio

import pytest

from ottla.broker.handlers.logger_configs import LoggerConfigsHandler
from ottla.broker.request import RequestContext, settled
from ottla.broker.resources import BROKER_LOGGER, ResourceType
from ottla.cluster.registration import ControllerMoved
from ottla.errors import ErrorCode
from ottla.model.ids import BrokerId
from ottla.net.server_connection import Peer
from ottla.protocol.message import Message
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

BROKER = BrokerId(1)
CONTEXT = RequestContext(1, "client", Peer("here", 1))
KINDS = [ResourceType.TOPIC, BROKER_LOGGER]


class WithoutController:
    """Where all else is changed, and nobody can just now."""

    async def handle(self, _request: Message, _context: RequestContext) -> Message:
        raise ControllerMoved

    def refuse(self, request: IncrementalAlterConfigsRequest, code: ErrorCode) -> Message:
        return IncrementalAlterConfigsResponse(
            responses=[
                AlterConfigsResourceResponse(code, None, each.resource_type, each.resource_name)
                for each in request.resources
            ]
        )


def test_what_is_refused_is_refused_for_every_resource_that_was_named() -> None:
    handler = LoggerConfigsHandler(WithoutController(), BROKER)
    changes = [AlterableConfig("ottla.requests", 0, "INFO")]
    request = IncrementalAlterConfigsRequest(
        [AlterConfigsResource(kind, str(BROKER), changes) for kind in KINDS], validate_only=True
    )
    with pytest.raises(ControllerMoved):
        asyncio.run(settled(handler.handle(request, CONTEXT)))
    refused = handler.refuse(request, ErrorCode.NOT_CONTROLLER)
    assert isinstance(refused, IncrementalAlterConfigsResponse)
    assert [each.resource_type for each in refused.responses] == KINDS
