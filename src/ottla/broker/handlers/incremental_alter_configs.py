"""IncrementalAlterConfigs: set, delete, append to or subtract from single settings."""

from __future__ import annotations

from ottla.broker.controller import Controller
from ottla.broker.request import RequestContext
from ottla.broker.resources import resource_type
from ottla.cluster.config_changes import Alteration, AlterOperation
from ottla.errors import ErrorCode, InvalidRequest, OttlaError
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class IncrementalAlterConfigsHandler:
    """Changes settings one by one."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    async def handle(
        self, request: IncrementalAlterConfigsRequest, _context: RequestContext
    ) -> IncrementalAlterConfigsResponse:
        return IncrementalAlterConfigsResponse(
            responses=[
                await self._alter(resource, validate_only=request.validate_only)
                for resource in request.resources
            ]
        )

    def refuse(
        self, request: IncrementalAlterConfigsRequest, code: ErrorCode
    ) -> IncrementalAlterConfigsResponse:
        return IncrementalAlterConfigsResponse(
            responses=[_answer(resource, code, code.sentence) for resource in request.resources]
        )

    async def _alter(
        self, resource: AlterConfigsResource, *, validate_only: bool
    ) -> AlterConfigsResourceResponse:
        try:
            await self._controller.alter_configs(
                resource_type(resource.resource_type),
                resource.resource_name,
                [_alteration(config) for config in resource.configs],
                validate_only=validate_only,
            )
        except OttlaError as error:
            return _answer(resource, error.code, str(error))
        return _answer(resource, ErrorCode.NONE, None)


def _alteration(config: AlterableConfig) -> Alteration:
    try:
        operation = AlterOperation(config.config_operation)
    except ValueError:
        raise InvalidRequest(f"{config.config_operation} is no operation on a setting") from None
    return Alteration(config.name, operation, config.value)


def _answer(
    resource: AlterConfigsResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        code, message, resource.resource_type, resource.resource_name
    )
