"""IncrementalAlterConfigs, as far as it is about loggers: those of the broker that is asked.

Stands before the handler of the rest, which may pass its part on to the controller.
"""

from __future__ import annotations

from ottla.broker.handlers.incremental_alter_configs import alterations_of, answer_to
from ottla.broker.loggers import alter_loggers
from ottla.broker.request import Handler, Outcome, RequestContext, settled
from ottla.broker.resources import BROKER_LOGGER, check_own
from ottla.errors import ErrorCode, OttlaError
from ottla.model.ids import BrokerId
from ottla.protocol.api import ApiKey
from ottla.protocol.message import Message
from ottla.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class LoggerConfigsHandler:
    """Changes levels of loggers, and lets `rest` change all else."""

    def __init__(self, rest: Handler, broker_id: BrokerId) -> None:
        self._rest = rest
        self._broker_id = broker_id

    def handle(self, request: IncrementalAlterConfigsRequest, context: RequestContext) -> Outcome:
        if all(resource.resource_type != BROKER_LOGGER for resource in request.resources):
            return self._rest.handle(request, context)
        return self._handle_both(request, context)

    def refuse(self, request: IncrementalAlterConfigsRequest, code: ErrorCode) -> Message:
        return self._rest.refuse(request, code)

    async def _handle_both(
        self, request: IncrementalAlterConfigsRequest, context: RequestContext
    ) -> IncrementalAlterConfigsResponse:
        answers = [
            self._alter(resource, validate_only=request.validate_only)
            for resource in request.resources
            if resource.resource_type == BROKER_LOGGER
        ]
        others = [
            resource for resource in request.resources if resource.resource_type != BROKER_LOGGER
        ]
        if others:
            rest = IncrementalAlterConfigsRequest(others, request.validate_only)
            answer = await settled(self._rest.handle(rest, context))
            assert isinstance(answer, IncrementalAlterConfigsResponse)
            answers += answer.responses
        return IncrementalAlterConfigsResponse(responses=answers)

    def _alter(
        self, resource: AlterConfigsResource, *, validate_only: bool
    ) -> AlterConfigsResourceResponse:
        try:
            check_own(resource.resource_name, self._broker_id)
            alter_loggers(alterations_of(resource), validate_only=validate_only)
        except OttlaError as error:
            return answer_to(resource, error.code, str(error))
        return answer_to(resource, ErrorCode.NONE, None)


def with_own_loggers(handlers: dict[ApiKey, Handler], broker_id: BrokerId) -> dict[ApiKey, Handler]:
    """The handlers, that of IncrementalAlterConfigs changing the loggers of this process."""
    key = ApiKey.INCREMENTAL_ALTER_CONFIGS
    return {**handlers, key: LoggerConfigsHandler(handlers[key], broker_id)}
