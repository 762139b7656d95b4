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
            responses=[answer_to(resource, code, code.sentence) for resource in request.resources]
        )

    async def _alter(
        self, resource: AlterConfigsResource, *, validate_only: bool
    ) -> AlterConfigsResourceResponse:
        try:
            await self._controller.alter_configs(
                resource_type(resource.resource_type),
                resource.resource_name,
                alterations_of(resource),
                validate_only=validate_only,
            )
        except OttlaError as error:
            return answer_to(resource, error.code, str(error))
        return answer_to(resource, ErrorCode.NONE, None)


def alterations_of(resource: AlterConfigsResource) -> list[Alteration]:
    """What is asked for."""
    return [_alteration(config) for config in resource.configs]


def _alteration(config: AlterableConfig) -> Alteration:
    try:
        operation = AlterOperation(config.config_operation)
    except ValueError:
        raise InvalidRequest(f"{config.config_operation} is no operation on a setting") from None
    return Alteration(config.name, operation, config.value)


def answer_to(
    resource: AlterConfigsResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    """How it went with one resource."""
    return AlterConfigsResourceResponse(
        code, message, resource.resource_type, resource.resource_name
    )
