"""Requests that belong to a feature are answered once the whole cluster has it."""

from __future__ import annotations

from typing import Any

from ottla.broker.cluster_view import ClusterView
from ottla.broker.request import Handler, RequestContext, settled
from ottla.errors import ErrorCode
from ottla.protocol.message import Message


class FeaturedHandler:
    """Passes a request on where a feature has some level at least."""

    def __init__(self, handler: Handler, view: ClusterView, feature: str, at_least: int) -> None:
        self._handler = handler
        self._view = view
        self._feature = feature
        self._at_least = at_least

    async def handle(self, request: Any, context: RequestContext) -> Message | None:
        if self._view.image.features.get(self._feature, 0) < self._at_least:
            return self._handler.refuse(request, ErrorCode.UNSUPPORTED_VERSION)
        return await settled(self._handler.handle(request, context))

    def refuse(self, request: Any, code: ErrorCode) -> Message:
        return self._handler.refuse(request, code)
