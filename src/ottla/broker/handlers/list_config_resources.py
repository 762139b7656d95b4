"""ListConfigResources: the names of everything that has or could have settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.broker.cluster_view import ClusterView
from ottla.broker.request import RequestContext
from ottla.broker.resources import BROKER_LOGGER, ResourceType
from ottla.cluster import layout
from ottla.errors import ErrorCode
from ottla.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_CLIENT_METRICS: Final = 16
_KNOWN: Final = frozenset({*ResourceType, BROKER_LOGGER, _CLIENT_METRICS})
"""What clients may ask for; of some kinds there are none here."""


class ListConfigResourcesHandler:
    """Lists names by kind."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    async def handle(
        self, request: ListConfigResourcesRequest, context: RequestContext
    ) -> ListConfigResourcesResponse:
        wanted: Iterable[int] = dict.fromkeys(request.resource_types)
        if context.version == 0:
            wanted = (_CLIENT_METRICS,)
        elif not request.resource_types:
            wanted = sorted(_KNOWN)
        resources: list[ConfigResource] = []
        for kind in wanted:
            if kind not in _KNOWN:
                return self.refuse(request, ErrorCode.UNSUPPORTED_VERSION)
            resources += [ConfigResource(name, kind) for name in self._names(kind)]
        return ListConfigResourcesResponse(config_resources=resources)

    def refuse(
        self, _request: ListConfigResourcesRequest, code: ErrorCode
    ) -> ListConfigResourcesResponse:
        return ListConfigResourcesResponse(error_code=code)

    def _names(self, kind: int) -> Iterable[str]:
        if kind == ResourceType.TOPIC:
            return self._view.image.topics
        if kind in (ResourceType.BROKER, BROKER_LOGGER):
            return map(str, self._view.image.brokers)
        return self._groups() if kind == ResourceType.GROUP else ()

    def _groups(self) -> Iterable[str]:
        for entity, config in self._view.image.entity_configs.items():
            group_id = layout.group_of(entity)
            if group_id is not None and config.configs:
                yield group_id
