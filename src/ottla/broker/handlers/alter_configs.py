"""AlterConfigs: replace all settings of a topic or broker by those given."""

from __future__ import annotations

from ottla.broker.controller import Controller
from ottla.broker.request import RequestContext
from ottla.broker.resources import resource_type
from ottla.errors import ErrorCode, InvalidRequest, OttlaError
from ottla.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


class AlterConfigsHandler:
    """Replaces settings."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    async def handle(
        self, request: AlterConfigsRequest, _context: RequestContext
    ) -> AlterConfigsResponse:
        return AlterConfigsResponse(
            responses=[
                await self._alter(resource, validate_only=request.validate_only)
                for resource in request.resources
            ]
        )

    def refuse(self, request: AlterConfigsRequest, code: ErrorCode) -> AlterConfigsResponse:
        return AlterConfigsResponse(
            responses=[_answer(resource, code, code.sentence) for resource in request.resources]
        )

    async def _alter(
        self, resource: AlterConfigsResource, *, validate_only: bool
    ) -> AlterConfigsResourceResponse:
        try:
            texts = {}
            for config in resource.configs:
                if config.value is None:
                    raise InvalidRequest(f"{config.name} has no value")
                texts[config.name] = config.value
            await self._controller.replace_configs(
                resource_type(resource.resource_type),
                resource.resource_name,
                texts,
                validate_only=validate_only,
            )
        except OttlaError as error:
            return _answer(resource, error.code, str(error))
        return _answer(resource, ErrorCode.NONE, None)


def _answer(
    resource: AlterConfigsResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        code, message, resource.resource_type, resource.resource_name
    )
